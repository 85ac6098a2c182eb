import fc from 'fast-check'
import t from 'tap'
import { askFor, resultOf, turn } from '../../../helpers/run-engine.ts'
import { type CuttableStore, onEachStore, type StorePlace } from '../../../helpers/open-stores.ts'
import { type ScriptedExecution, ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { type SseClient } from '../../../helpers/sse-client.ts'
import { serveTasks, taskEvents, type TaskServer } from '../../../helpers/task-app.ts'

const FINAL = new Set(['success', 'error', 'cancelled'])
const LEASE_MS = 2_000
/** Many seconds: what has not come by then does not come. */
const MAX_TURNS = 3_000_000
const verb = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('submit' as const, 'duplicate' as const, 'other' as const, 'say' as const, 'pause' as const, 'end' as const, 'fail' as const, 'cancel' as const, 'resume' as const, 'typo' as const, 'leave' as const, 'follow' as const, 'race' as const) },
  { weight: 1, arbitrary: fc.constantFrom('restart' as const, 'crash' as const) }
)
const step = fc.record({ verb, task: fc.constantFrom('t1', 't2', 't3') })
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

// A machine that is busy with other files takes its time, and a node that has ended is missed after a while only.
t.setTimeout(300_000)

onEachStore(t, 'whatever callers, agents and nodes do, a task ends once and for all', async (t, makePlace) => {
  let crashes = 0
  let restarts = 0
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
    const place = await makePlace()
    const teardowns: (() => unknown)[] = []
    const world = new World(place, { teardown: (fn) => { teardowns.push(fn) } })
    try {
      await world.begin()
      for (const each of steps) {
        await world.take(each)
        await world.check()
      }
      await world.finish()
    } finally {
      crashes += world.crashes
      restarts += world.restarts
      for (const teardown of teardowns.reverse()) await teardown()
      await world.close()
      await place.remove()
    }
  }), { numRuns: 25, endOnFailure: true })
  t.comment(`${crashes} nodes ended without a word, ${restarts} tasks were begun again`)
})

/** A server, its agent, and what must be true of every task that was ever submitted to it. */
class World {
  readonly #place: StorePlace
  readonly #t: { teardown (fn: () => unknown): unknown }
  readonly #agent = new ScriptedAgent({ resume: true })
  /** Of `t3`: where its node is gone it is begun again. */
  readonly #restartable = new ScriptedAgent({ resume: true, restartable: true })
  readonly #restarts = new Map<string, number>()
  readonly #final = new Map<string, unknown>()
  readonly #resumes = new Map<string, number>()
  readonly #submitted = new Set<string>()
  readonly #streams: { readonly task: string, readonly stream: SseClient }[] = []
  #store: CuttableStore | undefined
  #app: TaskServer | undefined
  crashes = 0

  constructor (place: StorePlace, t: { teardown (fn: () => unknown): unknown }) {
    this.#place = place
    this.#t = t
  }

  get app (): TaskServer {
    if (this.#app === undefined) throw new Error('not begun')
    return this.#app
  }

  get restarts (): number {
    return [...this.#restarts.values()].reduce((sum, count) => sum + count, 0)
  }

  async begin (): Promise<void> {
    this.#store = await this.#place.open()
    this.#app = await serveTasks(this.#t, { agents: { once: this.#agent, again: this.#restartable }, store: this.#store, host: { shutdownMs: 500, leaseMs: LEASE_MS }, subscribeGraceMs: 0 })
  }

  async close (): Promise<void> {
    await this.#store?.close()
  }

  async take ({ verb, task }: Step): Promise<void> {
    switch (verb) {
      case 'submit': case 'duplicate': return await this.#submit(task, {})
      case 'other': return await this.#submit(task, { input: 'other' })
      case 'say': return await this.#active(task)?.say({ type: 'TEXT_BLOCK_DELTA', delta: 'x' })
      case 'pause': return await this.#pause(task)
      case 'end':
        this.#active(task)?.finish()
        return await this.#settle(task)
      case 'fail':
        this.#active(task)?.fail(new Error('broken'))
        return await this.#settle(task)
      case 'cancel': await this.app.ask('POST', `/tasks/${task}/cancel`); return
      case 'resume': return await this.#resume(task)
      case 'typo': await this.app.ask('POST', `/tasks/${task}/resume`, { decisions: [{ toolCallId: 'typo', approved: true }] }); return
      case 'leave': {
        const stream = await this.app.events(task)
        await stream.destroy()
        return
      }
      case 'follow': {
        const stream = await this.app.events(task)
        if (stream.status === 200) this.#streams.push({ task, stream })
        return
      }
      case 'restart':
        await this.app.app.close()
        await this.close()
        return await this.begin()
      case 'crash': return await this.#crash()
      case 'race': {
        const active = this.#active(task)
        await Promise.all([this.app.ask('POST', `/tasks/${task}/cancel`), this.#resume(task), this.#submit(task, {}), active?.finish()])
        return await this.#settle(task)
      }
    }
  }

  async check (): Promise<void> {
    for (const task of this.#submitted) {
      const { body } = await this.app.ask('GET', `/tasks/${task}`)
      const known = this.#final.get(task)
      if (known !== undefined && known !== body.status) throw new Error(`${task} was ${String(known)} and is ${String(body.status)}`)
      if (FINAL.has(String(body.status))) this.#final.set(task, body.status)
      if (body.status === 'awaiting_confirm' && (body.pending_confirms as unknown[]).length !== 1) throw new Error(`${task} waits for ${JSON.stringify(body.pending_confirms)}`)
      const executions = this.#count(task)
      if (executions > 1 + (this.#resumes.get(task) ?? 0) + (this.#restarts.get(task) ?? 0)) throw new Error(`${task} was executed ${executions} times`)
    }
  }

  /** Ends everything, and reads every log from its start. */
  async finish (): Promise<void> {
    const logs = new Map<string, readonly string[]>()
    for (const task of this.#submitted) {
      await this.app.ask('POST', `/tasks/${task}/cancel`)
      const { body } = await this.app.ask('GET', `/tasks/${task}`)
      if (!FINAL.has(String(body.status))) throw new Error(`${task} did not end: ${String(body.status)}`)
      const frames = await (await this.app.events(task)).rest()
      const events = taskEvents(frames)
      logs.set(task, frames.flatMap(({ data }) => data ?? []))
      const seqs = events.map(({ seq }) => seq)
      if (!seqs.every((seq, index) => seq === index + 1)) throw new Error(`${task} has holes: ${seqs.join()}`)
      const terminals = events.filter(({ type, eventType }) => type === 'STATUS' || (type === 'RUN_ERROR' && eventType === undefined))
      const last = events.at(-1)
      if (terminals.length !== 1 || terminals[0] !== last) throw new Error(`${task}: ${events.map(({ type }) => type).join()}`)
      if (last?.status !== body.status) throw new Error(`${task} is ${String(body.status)} and ended with ${String(last?.status)}`)
    }
    await this.check()
    // Whatever a reader was told, before a restart or after it, stands in the log at that place.
    for (const { task, stream } of this.#streams) {
      const told = (await stream.rest()).flatMap(({ data }) => data ?? [])
      const log = logs.get(task) ?? []
      if (told.some((data, index) => data !== log[index])) throw new Error(`a reader of ${task} was told ${told.join('\n')} of ${log.join('\n')}`)
    }
  }

  #count (task: string): number {
    return this.#executions(task).length
  }

  #active (task: string): ScriptedExecution | undefined {
    return this.#executions(task).findLast(({ isDone }) => !isDone)
  }

  #executions (task: string): ScriptedExecution[] {
    return [...this.#agent.executions, ...this.#restartable.executions].filter(({ context }) => context.runId === task)
  }

  async #submit (task: string, more: Readonly<Record<string, unknown>>): Promise<void> {
    const { status, body } = await this.app.submit(task, { agent_id: task === 't3' ? 'again' : 'once', context: { detail: 'full' }, ...more })
    if (status !== 200) return
    this.#submitted.add(task)
    if (body.duplicate !== true) await this.#begun(task, 1)
  }

  async #pause (task: string): Promise<void> {
    const execution = this.#active(task)
    if (execution === undefined) return
    await execution.say(...askFor('c1'))
    execution.finish()
    await this.#settle(task)
  }

  async #resume (task: string): Promise<void> {
    const { status } = await this.app.ask('POST', `/tasks/${task}/resume`, { decisions: [{ toolCallId: 'c1', approved: true }] })
    if (status !== 200) return
    const resumes = (this.#resumes.get(task) ?? 0) + 1
    this.#resumes.set(task, resumes)
    await this.#begun(task, 1 + resumes)
    await this.#active(task)?.say(...resultOf('c1'))
  }

  /** The node is gone in one moment; another one ends in its place what it executed. */
  async #crash (): Promise<void> {
    this.crashes++
    const counts = new Map([...this.#submitted].map((task) => [task, this.#count(task)]))
    await this.#store?.cut()
    await this.app.app.close()
    await this.#place.advance(2 * LEASE_MS)
    await this.begin()
    for (const [task, count] of counts) {
      await this.#begun(task, count + 1)
      if (this.#count(task) > count) this.#restarts.set(task, (this.#restarts.get(task) ?? 0) + 1)
      if (task !== 't3' && this.#count(task) > count) throw new Error(`${task} was begun again`)
    }
  }

  /** Waits until the agent has been called that often, or has no more reason to be. */
  async #begun (task: string, count: number): Promise<void> {
    const over = new AbortController()
    const run = await this.app.host.engine.find({}, 'agent-protocol', task)
    run?.settled().then(() => { over.abort() })
    for (let turns = 0; !over.signal.aborted && this.#count(task) < count; turns++) {
      if (turns === MAX_TURNS) {
        const { body } = await this.app.ask('GET', `/tasks/${task}`)
        throw new Error(`${task} was executed ${this.#count(task)} times and not ${count}: ${JSON.stringify({ record: run?.record, body, logs: this.app.logs.slice(-10) })}`)
      }
      await turn()
    }
  }

  /** Waits until nothing is under way, if anything has made it end. */
  async #settle (task: string): Promise<void> {
    const run = await this.app.host.engine.find({}, 'agent-protocol', task)
    if (run !== undefined && this.#active(task) === undefined) await run.settled()
  }
}
