import { AsyncLocalStorage } from 'node:async_hooks'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { AgentError } from '../../../lib/agent/index.ts'
import { type RunSpec } from '../../../lib/runs/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { RecordingObserver } from '../../helpers/recording-observer.ts'
import { agentOf, approve, makeEngine, pause, runOf, type TestEngine, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

function watched (t: Test, options: Parameters<typeof makeEngine>[1] = {}): TestEngine & { readonly observer: RecordingObserver } {
  const observer = new RecordingObserver()
  return { ...makeEngine(t, { ...options, observer }), observer }
}

t.test('an observer is told of a run from its start to its end, and of its first event once', async (t) => {
  const { engine, observer, store } = watched(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    for (const delta of ['a', 'b', 'c']) yield { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta }
  }))))
  await run.ended
  t.same(observer.lines, ['#1 starting scripted over ledger', '#1 running', '#1 executes', '#1 first event', '#1 ended completed'])
  t.equal((await store.runs.get(run.record.key))?.trace, 'trace-of-#1')
})

t.test('the execution that goes on after a pause is a further one, with the trace of the first', async (t) => {
  const { engine, observer } = watched(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] });
  (await agent.called()).finish()
  await run.ended
  t.same(observer.lines, [
    '#1 starting scripted over ledger', '#1 running', '#1 executes', '#1 first event', '#1 ended paused',
    '#2 resuming scripted over ledger traced trace-of-#1', '#2 running', '#2 executes', '#2 ended completed'
  ])
})

t.test('a run that answers another one says which', async (t) => {
  const { engine, observer } = watched(t)
  const agent = new ScriptedAgent()
  const spec = (overrides: Partial<RunSpec>): RunSpec => specOf(agent, { protocol: envelope, holdGateWhileWaiting: false, ...overrides })
  await pause(agent, runOf(await engine.start(spec({ clientId: 'first' }))))
  const second = runOf(await engine.start(spec({ clientId: 'second', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
  await turn();
  (await agent.called()).finish()
  await second.ended
  t.same(observer.lines.slice(5).sort(), [
    '#2 answers first traced trace-of-#1', '#2 ended completed', '#2 executes', '#2 resuming scripted over envelope', '#2 running'
  ])
})

t.test('every way to end has its own reason, and comes once', async (t) => {
  const { engine, observer } = watched(t)
  const started = async (session: string, overrides: Partial<RunSpec> = {}) => {
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent, { session, clientId: session, ...overrides })))
    return { run, execution: await agent.called() }
  }
  const failing = await started('failing')
  failing.execution.fail(new AgentError({ code: 'no_luck', message: 'x' }))
  await failing.run.ended
  const stopped = await started('stopped')
  await engine.stop(stopped.run)
  const left = await started('left', { onDisconnect: 'interrupt' })
  left.run.connect({ own: true }).close()
  await left.run.ended
  const slow = await started('slow', { runTimeoutMs: 1 })
  await slow.run.ended
  const superseded = await started('superseded')
  const next = await engine.start(specOf(agentOf(async function * () {}), { session: 'superseded', clientId: 'next', onBusySession: 'supersede' }))
  await superseded.run.ended
  await runOf(next).ended
  const waiting = new ScriptedAgent()
  const paused = runOf(await engine.start(specOf(waiting, { session: 'waiting', clientId: 'waiting' })))
  await pause(waiting, paused)
  await engine.stop(paused)
  await started('closing')
  await engine.close({ timeoutMs: 200 })
  t.same(observer.ends, ['failed no_luck', 'cancelled', 'disconnect', 'timeout', 'superseded', 'completed', 'paused', 'cancelled', 'shutdown'])
})

t.test('a start that is undone ends as not started, one that is refused was never seen', async (t) => {
  const { engine, observer, plan } = watched(t)
  plan.failBefore('runs.create')
  const agent = new ScriptedAgent()
  await t.rejects(engine.start(specOf(agent)), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  t.same(observer.lines, ['#1 starting scripted over ledger', '#1 ended not-started'])
  const run = runOf(await engine.start(specOf(agent)))
  t.equal((await engine.start(specOf(agent, { clientId: 'r2' }))).kind, 'busy')
  await engine.stop(run)
  t.same(observer.ends, ['not-started', 'cancelled'])
  t.ok(observer.storeCalls.includes('runs.create failed'))
  t.ok(observer.storeCalls.includes('runs.create ok'))
  t.strictSame(observer.storeCalls.filter((line) => / after /.test(line)), [])
})

t.test('what the store takes too long for is told once, as late', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  let now = 0
  t.intercept(performance, 'now', { value: () => now })
  const { engine, observer, plan } = watched(t, { storeTimeoutMs: 100 })
  const hold = plan.hold('index.last')
  const asked = engine.lastOf({}, 'ledger', 's1')
  await hold.arrived
  for (let i = 0; i < 5; i++) {
    now += 30
    mock.timers.tick(30)
  }
  await t.rejects(asked, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  hold.release()
  await turn()
  t.same(observer.storeCalls, ['index.last late'])
})

t.test('a run that another node ends is reaped there and lost here; what a closing node gives up is handed over', async (t) => {
  let now = 1_000_000
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.intercept(performance, 'now', { value: () => now })
  t.teardown(() => { mock.timers.reset() })
  const pass = async (ms: number): Promise<void> => {
    now += ms
    mock.timers.tick(ms)
    for (let i = 0; i < 20; i++) await turn()
  }
  const store = memoryStore({ now: () => now })
  t.teardown(() => store.close())
  const [a, b] = [watched(t, { store, leaseMs: 3_000 }), watched(t, { store, leaseMs: 3_000 })]
  for (const { engine } of [a, b]) engine.register(specOf(new ScriptedAgent()).protocol)
  const run = runOf(await a.engine.start(specOf(new ScriptedAgent())))
  const holds = [a.plan.hold('leases.renew'), a.plan.hold('gates.renew')]
  for (let i = 0; i < 4; i++) await pass(1_000)
  for (const hold of holds) hold.release()
  await run.ended
  const lines = [...a.observer.lines, ...b.observer.lines]
  t.same(lines.filter((line) => / ended |reaped/.test(line)).sort(), ['#1 ended lost', 'reaped r1'])

  const agent = new ScriptedAgent()
  const late = runOf(await b.engine.start(specOf(agent, { session: 'late' })));
  (await agent.called()).isDeaf = true
  b.plan.hold('runs.commit')
  const closing = b.engine.close({ timeoutMs: 100 })
  for (let i = 0; i < 4; i++) await pass(50)
  await closing
  await late.ended
  t.same(b.observer.ends, ['handed-over'])
})

t.test('the agent runs in the asynchronous context that its observer sets, whoever wakes it', async (t) => {
  const context = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  let wake = (): void => {}
  const { engine } = makeEngine(t, {
    observer: { starting: () => ({ execute: (work) => context.run('inside', work), ended: () => { seen.push(`ended ${context.getStore()}`) } }) }
  })
  const run = runOf(await context.run('caller', () => engine.start(specOf(async () => {
    seen.push(context.getStore())
    return agentOf(async function * () {
      for (let i = 0; i < 3; i++) {
        await new Promise<void>((resolve) => { wake = resolve })
        seen.push(context.getStore())
        yield { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'x' }
      }
    })
  }))))
  for (let i = 0; i < 3; i++) {
    await turn()
    context.run('somebody else', () => { wake() })
  }
  await run.ended
  t.same(seen, ['inside', 'inside', 'inside', 'inside', 'ended caller'])
})
