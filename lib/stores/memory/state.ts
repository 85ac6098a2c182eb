import type { Fold } from '../event-log.ts'
import { type RunKey, runKeyText } from '../run-key.ts'
import { InterruptList } from '../rules/interrupt-list.ts'
import type { HeldLease } from '../rules/lease.ts'
import type { LogEdge } from '../rules/log.ts'
import { changed, endsLease, ownFirstOf } from '../rules/record.ts'
import { isEnded, type RunRecord } from '../run-store.ts'
import type { ResolvedMemoryOptions } from './options.ts'
import { RunLog } from './run-log.ts'

/** Everything under one run key. */
export interface MemoryRun {
  readonly text: string
  readonly createOp: string
  record: RunRecord
  lastOp: string | undefined
  readonly log: RunLog
  /** The fold as JSON text: the owner may go on changing the state it gave. */
  fold: Fold | undefined
  readonly interrupts: InterruptList
  readonly presence: Map<string, number>
  /** When the store saw the run end. */
  endedAt: number | undefined
}

/** Something that holds what runs out. `sweep` drops it; `isEmpty` says that nothing is left to sweep. */
export interface Sweepable {
  sweep (now: number): void
  isEmpty (): boolean
}

/** The runs of a memory store, their life time, and its clock. Shared by the ports that work on run keys. */
export class MemoryState {
  readonly options: ResolvedMemoryOptions
  /** Runs that have a lease. */
  readonly leased = new Map<MemoryRun, HeldLease>()
  /** Called when a run is dropped, for whatever reason. */
  readonly onDrop: ((run: MemoryRun) => unknown)[] = []
  interruptCount = 0
  logBytes = 0
  readonly #runs = new Map<string, MemoryRun>()
  /** Ended runs, the one that ended longest ago first. */
  readonly #ended = new Set<MemoryRun>()
  readonly #sweepables: Sweepable[] = []
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor (options: ResolvedMemoryOptions) {
    this.options = options
    this.#sweepables.push({
      sweep: (now) => { for (const run of this.#runs.values()) if (this.#isOver(run, now)) this.drop(run) },
      isEmpty: () => this.#runs.size === 0
    })
  }

  get size (): number { return this.#runs.size }
  get now (): number { return this.options.now() }

  /** The run, unless its time has come. */
  find (key: RunKey): MemoryRun | undefined {
    const run = this.#runs.get(runKeyText(key))
    if (run === undefined || !this.#isOver(run, this.now)) return run
    this.drop(run)
    return undefined
  }

  add (record: RunRecord, op: string): MemoryRun {
    const run: MemoryRun = {
      text: runKeyText(record.key),
      createOp: op,
      record,
      lastOp: undefined,
      log: new RunLog(),
      fold: undefined,
      interrupts: new InterruptList(),
      presence: new Map(),
      endedAt: undefined
    }
    this.#runs.set(run.text, run)
    this.keepSwept()
    return run
  }

  drop (run: MemoryRun): void {
    this.#runs.delete(run.text)
    this.#ended.delete(run)
    this.leased.delete(run)
    this.interruptCount -= run.interrupts.size
    this.logBytes -= run.log.bytes
    for (const tell of this.onDrop) tell(run)
  }

  /** Drops the run that ended longest ago. False: none has ended. */
  dropOldestEnded (): boolean {
    const oldest = this.#ended.values().next()
    if (oldest.done === true) return false
    this.drop(oldest.value)
    return true
  }

  /** Puts a changed record in place, one version on. A written state that is not active ends the lease. */
  write (run: MemoryRun, change: Partial<RunRecord>, op: string | undefined): RunRecord {
    run.record = changed(run.record, change, this.now)
    run.lastOp = op
    if (endsLease(change)) this.leased.delete(run)
    if (run.endedAt === undefined && isEnded(run.record.state)) {
      run.endedAt = this.now
      this.#ended.add(run)
    }
    return run.record
  }

  register (sweepable: Sweepable): void {
    this.#sweepables.push(sweepable)
  }

  /** Runs the sweep timer as long as there is something to sweep. */
  keepSwept (): void {
    if (this.#timer !== undefined || this.#closed) return
    this.#timer = setInterval(() => this.#sweep(), this.options.sweepMs)
    this.#timer.unref()
  }

  close (): void {
    this.#closed = true
    this.#stop()
  }

  #sweep (): void {
    const now = this.now
    for (const sweepable of this.#sweepables) sweepable.sweep(now)
    if (this.#sweepables.every((sweepable) => sweepable.isEmpty())) this.#stop()
  }

  #stop (): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #isOver (run: MemoryRun, now: number): boolean {
    const { expiresAt } = run.record
    if (expiresAt !== undefined) return expiresAt <= now
    return run.endedAt !== undefined && run.endedAt + this.options.endedTtlMs <= now
  }
}

/** The fold as the port returns it. */
export function foldOf (run: MemoryRun): Fold | undefined {
  return run.fold
}

/** Where the run's log stands. */
export function edgeOf ({ log: { last }, record }: MemoryRun): LogEdge {
  return { last, ownFirst: ownFirstOf(record) }
}
