import { type Connection, type Run, type RunSpec } from '../../../../lib/runs/index.ts'
import { type RunRecord } from '../../../../lib/stores/index.ts'
import { type ScriptedExecution } from '../../../helpers/scripted-agent.ts'
import { Listener } from './listener.ts'
import { type StartStep } from './steps.ts'

/** R1, R17, and the longest thing that the model's agents say, framed. */
const MAX_AHEAD_BYTES = 256 * 1024
const MAX_LAG_BYTES = 64 * 1024
const MAX_EVENT_BYTES = 41_000

/** Somebody who is connected to a run and listens to it, as a response does. */
export interface Reader {
  readonly listener: Listener
  readonly connection: Connection
  readonly isOwn: boolean
}

/** The run was left by everybody at a moment when that has to end it. */
export interface Abandonment {
  readonly at: number
  /** Settles when the execution of then is over. */
  readonly settled: Promise<RunRecord>
  /** Somebody came back in time. */
  isOver: boolean
}

/** A run that was started, and all that is known of it from outside. */
export class Known {
  /** Unique, where the client's id is unique for an owner only. */
  readonly label: string
  readonly spec: RunSpec
  readonly step: StartStep
  readonly run: Run
  /** Sees everything as soon as it is told. */
  readonly watcher: Listener
  /** Who only listens. */
  readonly listeners: Listener[] = []
  /** Who is connected. */
  readonly readers = new Set<Reader>()
  /** Who was. */
  readonly former: Reader[] = []
  readonly abandonments: Abandonment[] = []
  readonly problems: string[] = []
  /** Something was said that makes the run end or pause: the caller's lag is not bounded by the agent's waiting alone. */
  isClosing = false
  readonly #now: () => number

  constructor (label: string, spec: RunSpec, step: StartStep, run: Run, now: () => number) {
    this.label = label
    this.spec = spec
    this.step = step
    this.run = run
    this.#now = now
    this.watcher = new Listener(run, { isWatching: true })
  }

  /** An execution is queued or under way, as far as the record says. */
  get isActive (): boolean {
    const { state } = this.run.record
    return state === 'pending' || state === 'running'
  }

  /** Given up because its store was away: its end is the store's to tell, later. */
  get isGivenUp (): boolean {
    const { end, state } = this.run.record
    return end?.code === 'STORE_UNAVAILABLE' || state === 'lost'
  }

  get own (): Reader | undefined {
    return [...this.readers].find(({ isOwn }) => isOwn)
  }

  /** Everybody who listens or did. */
  get everybody (): readonly Listener[] {
    return [this.watcher, ...this.listeners, ...[...this.readers, ...this.former].map(({ listener }) => listener)]
  }

  /** Connects as a stream does: counted, and left when the engine says so. There is one caller of its own at a time. */
  connect (isOwn: boolean): void {
    const own = isOwn && this.own === undefined
    for (const abandonment of this.abandonments) abandonment.isOver = true
    const connection = this.run.connect({ own, onDrop: () => { this.#dropped(reader) } })
    const reader: Reader = { listener: new Listener(this.run, { isOwn: own }), connection, isOwn: own }
    this.readers.add(reader)
  }

  /** A reader goes, or nobody when there is none. */
  leave (reader: Reader | undefined): void {
    if (reader === undefined || !this.readers.delete(reader)) return
    this.former.push(reader)
    this.#noteAbandoned()
    reader.listener.leave()
    reader.connection.close()
  }

  listen (level: Listener['level'], after: number): void {
    this.listeners.push(new Listener(this.run, { level, after }))
  }

  /** What has to hold at any moment at which nothing is under way that needs no time. */
  look (execution: ScriptedExecution | undefined, isCalm: boolean, report: (problem: string) => void): void {
    for (const problem of this.problems.splice(0)) report(problem)
    if (execution === undefined || this.run.record.state !== 'running' || this.isClosing) return
    const { topic } = this.run
    const ahead = topic.read(topic.stored).reduce((bytes, { data }) => bytes + data.length, 0)
    // R1: beyond the limit there is at most the event that crossed it.
    if (ahead > MAX_AHEAD_BYTES + MAX_EVENT_BYTES) report(`is ${ahead} bytes ahead of its store`)
    // R17: the agent waits for its caller, and for nobody else.
    const lag = this.own?.listener.lagBytes ?? 0
    if (lag > MAX_LAG_BYTES + MAX_EVENT_BYTES) report(`left its caller ${lag} bytes behind`)
    if (isCalm && lag < MAX_LAG_BYTES && execution.queued > 0 && !execution.isDone) report(`waits for somebody who is not its caller, with ${execution.queued} to say`)
  }

  /** Called when an execution is aborted because of a disconnect. */
  onDisconnected (isCalm: boolean): void {
    if (this.step.isReadElsewhere && isCalm) this.problems.push('was interrupted although it is read on another node')
    if (this.readers.size > 0) this.problems.push(`was left by everybody, it is said, while ${this.readers.size} are there`)
    const { onDisconnect } = this.spec
    const { at } = this.abandonments.at(-1) ?? {}
    if (typeof onDisconnect === 'object' && at !== undefined && this.#now() < at + onDisconnect.graceMs) this.problems.push(`was left at ${at}, and interrupted before its grace was over`)
    if (onDisconnect === 'continue') this.problems.push('was interrupted although its policy is to go on')
  }

  #dropped (reader: Reader): void {
    const { stalledAt } = reader.listener
    const { writeTimeoutMs = 30_000 } = this.spec
    if (!reader.isOwn) this.problems.push('a reader that is not the caller was dropped')
    if (stalledAt === undefined || this.#now() - stalledAt < writeTimeoutMs) this.problems.push(`the caller was dropped that took nothing since ${stalledAt}`)
    this.readers.delete(reader)
    this.former.push(reader)
    this.#noteAbandoned()
    reader.listener.leave()
  }

  /** Whoever leaves last leaves the run to its policy (R18). */
  #noteAbandoned (): void {
    if (this.readers.size > 0 || !this.isActive || this.spec.onDisconnect === 'continue' || this.step.isReadElsewhere) return
    this.abandonments.push({ at: this.#now(), settled: this.run.settled(), isOver: false })
  }
}
