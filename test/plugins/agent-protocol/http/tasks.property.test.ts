import fc from 'fast-check'
import t from 'tap'
import { type Store } from '../../../../lib/stores/index.ts'
import { askFor, resultOf } from '../../../helpers/run-engine.ts'
import { openableStores } from '../../../helpers/open-stores.ts'
import { type ScriptedExecution, ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { serveTasks, taskEvents, type TaskServer } from '../../../helpers/task-app.ts'

const VERBS = ['submit', 'duplicate', 'other', 'say', 'pause', 'end', 'fail', 'cancel', 'resume', 'typo', 'leave', 'restart', 'race'] as const
const FINAL = new Set(['success', 'error', 'cancelled'])
const step = fc.record({ verb: fc.constantFrom(...VERBS), task: fc.constantFrom('t1', 't2', 't3') })
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

for (const { name, open } of openableStores) {
  t.test(`whatever callers and agents do, a task ends once and for all (${name})`, async (t) => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      const store = await open()
      const teardowns: (() => unknown)[] = []
      try {
        const world = new World(store, { teardown: (fn) => { teardowns.push(fn) } })
        await world.begin()
        for (const each of steps) {
          await world.take(each)
          await world.check()
        }
        await world.finish()
      } finally {
        for (const teardown of teardowns.reverse()) await teardown()
        await store.close()
      }
    }), { numRuns: 25 })
  })
}

/** A server, its agent, and what must be true of every task that was ever submitted to it. */
class World {
  readonly #store: Store
  readonly #t: { teardown (fn: () => unknown): unknown }
  readonly #agent = new ScriptedAgent({ resume: true })
  readonly #final = new Map<string, unknown>()
  readonly #resumes = new Map<string, number>()
  readonly #submitted = new Set<string>()
  #app: TaskServer | undefined

  constructor (store: Store, t: { teardown (fn: () => unknown): unknown }) {
    this.#store = store
    this.#t = t
  }

  get app (): TaskServer {
    if (this.#app === undefined) throw new Error('not begun')
    return this.#app
  }

  async begin (): Promise<void> {
    this.#app = await serveTasks(this.#t, { agent: this.#agent, store: this.#store, host: { shutdownMs: 500 }, subscribeGraceMs: 0 })
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
      case 'restart':
        await this.app.app.close()
        return await this.begin()
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
      const executions = this.#agent.executions.filter(({ context }) => context.runId === task).length
      if (executions > 1 + (this.#resumes.get(task) ?? 0)) throw new Error(`${task} was executed ${executions} times`)
    }
  }

  /** Ends everything, and reads every log from its start. */
  async finish (): Promise<void> {
    for (const task of this.#submitted) {
      await this.app.ask('POST', `/tasks/${task}/cancel`)
      const { body } = await this.app.ask('GET', `/tasks/${task}`)
      if (!FINAL.has(String(body.status))) throw new Error(`${task} did not end: ${String(body.status)}`)
      const events = taskEvents(await (await this.app.events(task)).rest())
      const seqs = events.map(({ seq }) => seq)
      if (!seqs.every((seq, index) => seq === index + 1)) throw new Error(`${task} has holes: ${seqs.join()}`)
      const terminals = events.filter(({ type }) => type === 'STATUS' || type === 'RUN_ERROR')
      const last = events.at(-1)
      if (terminals.length !== 1 || terminals[0] !== last) throw new Error(`${task}: ${events.map(({ type }) => type).join()}`)
      if (last?.status !== body.status) throw new Error(`${task} is ${String(body.status)} and ended with ${String(last?.status)}`)
    }
    await this.check()
  }

  #active (task: string): ScriptedExecution | undefined {
    return this.#agent.executions.findLast(({ context, isDone }) => context.runId === task && !isDone)
  }

  async #submit (task: string, more: Readonly<Record<string, unknown>>): Promise<void> {
    const { status } = await this.app.submit(task, more)
    if (status === 200) this.#submitted.add(task)
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
    this.#resumes.set(task, (this.#resumes.get(task) ?? 0) + 1)
    await this.#active(task)?.say(...resultOf('c1'))
  }

  /** Waits until nothing is under way, if anything has made it end. */
  async #settle (task: string): Promise<void> {
    const run = await this.app.host.engine.find({}, 'agent-protocol', task)
    if (run !== undefined && this.#active(task) === undefined) await run.settled()
  }
}
