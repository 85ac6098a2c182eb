import { getEventListeners } from 'node:events'
import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { type Run, RunEngine } from '../../../lib/runs/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { approve, pause, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

/** Counts the timers that are set and neither fired nor cleared. */
function countTimers (): { readonly live: Set<unknown>, restore (): void } {
  const live = new Set<unknown>()
  const { setTimeout: set, clearTimeout: clear, setInterval: every, clearInterval: stop } = globalThis
  const patched = globalThis as unknown as Record<string, unknown>
  patched.setTimeout = (callback: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
    const timer = set(() => {
      live.delete(timer)
      callback(...args)
    }, ms)
    live.add(timer)
    return timer
  }
  patched.setInterval = (callback: () => void, ms: number) => {
    const timer = every(callback, ms)
    live.add(timer)
    return timer
  }
  patched.clearTimeout = (timer: NodeJS.Timeout) => { live.delete(timer); clear(timer) }
  patched.clearInterval = (timer: NodeJS.Timeout) => { live.delete(timer); stop(timer) }
  return { live, restore: () => { Object.assign(globalThis, { setTimeout: set, clearTimeout: clear, setInterval: every, clearInterval: stop }) } }
}

const ways: Record<string, (engine: RunEngine, agent: ScriptedAgent, run: Run) => Promise<void>> = {
  async returns (_engine, agent) {
    const execution = await agent.called()
    await execution.text('x')
    execution.finish()
  },
  async throws (_engine, agent) {
    const execution = await agent.called()
    execution.fail(new Error('no'))
  },
  async 'is stopped' (engine, agent, run) {
    const execution = await agent.called()
    await execution.text('x')
    await engine.stop(run)
  },
  async 'is left' (_engine, agent, run) {
    const connection = run.connect({ own: true })
    const reader = run.topic.attach({ view: { key: 'x', frame: ({ data }) => ({ head: '', data, tail: '\n' }) }, upTo: 'last', lossless: true, sink: { write: () => true, gap () {}, end () {} } })
    await agent.called()
    reader.close()
    connection.close()
  },
  async 'pauses and is resumed' (engine, agent, run) {
    await pause(agent, run)
    await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
    const second = await agent.called()
    second.finish()
  }
}

t.test('a thousand runs leave no timer, no listener and no run behind', async (t) => {
  const timers = countTimers()
  t.teardown(timers.restore)
  const bus = new EventBus()
  const store = memoryStore()
  const engine = new RunEngine({ bus, store })
  let listeners = 0
  const refs: WeakRef<Run>[] = []

  const once = async (index: number): Promise<void> => {
    const agent = new ScriptedAgent()
    const names = Object.keys(ways)
    const way = ways[names[index % names.length] as string] as typeof ways[string]
    const run = runOf(await engine.start(specOf(agent, { clientId: `r${index}`, session: `s${index % 7}`, onBusySession: 'queue', onDisconnect: 'interrupt', runTimeoutMs: 60_000, replay: { maxEvents: 100, maxBytes: 100_000, ttlMs: 1 } })))
    await way(engine, agent, run)
    await run.ended
    for (const { context } of agent.executions) listeners += getEventListeners(context.signal, 'abort').length
    refs.push(new WeakRef(run))
  }
  await once(0)
  const baseline = 2 // the engine's beat and the store's sweep
  for (let index = 1; index < 1_000; index += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, offset) => once(index + offset)))
  }
  while (bus.size > 0) await new Promise((resolve) => { setTimeout(resolve, 2) })
  t.ok(timers.live.size <= baseline + 1, `${timers.live.size} timers`) // one of the store calls' deadline may be about to look and stop
  t.equal(listeners, 0)
  await engine.close()
  await store.close()
  t.equal(timers.live.size, 0)
  for (let i = 0; i < 3; i++) {
    await turn()
    globalThis.gc?.()
  }
  if (globalThis.gc !== undefined) t.ok(refs.filter((ref) => ref.deref() !== undefined).length < 20, 'runs are collected')
})
