import { type EventInit, type Topic } from '../bus/index.ts'
import { type Barrier, type EventLog, type LogLimits, type RunRecord, type RunStore } from '../stores/index.ts'
import { type Audience } from './audience.ts'
import { commitBarrier, HeldEvents, type BarrierResult } from './barrier.ts'
import { epochOf, unstoredEpochOf } from './epoch.ts'
import { type FoldCadence, foldCadence, FoldKeeper } from './fold.ts'
import { type Emit, type EmitOptions, type RunProtocol, type Snapshot } from './protocol.ts'
import { type ReplayLimits } from './spec.ts'
import { Writer } from './writer.ts'

/** What a run's log works with. */
export interface RunLogPorts {
  readonly runs: RunStore
  readonly log: EventLog
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  /** Whether another process may take the run over while this one lives. */
  readonly isShared: boolean
  /** Readers on other nodes. */
  readonly audience: Audience
}

/** What the log asks and tells its run. */
export interface RunLogHooks {
  /** Whether our ownership is certain at this moment (R8). Where it is not, it is made sure of, and {@link RunLog.wake} called then. */
  isCertain (): boolean
  onLost (): void
  onUnavailable (): void
}

/** Of an event that says nothing but its payload. */
const PLAIN: EmitOptions = {}

/** What a barrier writes beside the events that are held. */
export type BarrierPart = Pick<Barrier, 'patch' | 'interrupts' | 'closeInterrupts'>

/**
 * A run's log on the node that owns it: numbered in memory, told at once, stored behind (R1, R6), and held back behind
 * a pause or a terminal until that is stored (R3).
 */
export class RunLog {
  readonly topic: Topic
  readonly #ports: RunLogPorts
  readonly #replay: ReplayLimits
  readonly #cadence: FoldCadence
  readonly #held = new HeldEvents()
  #fold: FoldKeeper | undefined
  #writer: Writer | undefined
  #isHolding = false
  #isSilent = false
  /** What is told may be told without a look at the lease: it is true whoever has the run. */
  #isTrue = false
  #isSavingFold = false
  #now = 0
  /** Payloads of this ownership. */
  #size = 0

  constructor (ports: RunLogPorts, protocol: RunProtocol, record: RunRecord, topic: Topic, replay: ReplayLimits, fold?: FoldKeeper) {
    this.topic = topic
    this.#ports = ports
    this.#replay = replay
    this.#cadence = foldCadence(ports.isShared, replay)
    this.#fold = fold ?? (protocol.fold === undefined ? undefined : new FoldKeeper(protocol.fold, record))
  }

  /** Starts to write under an ownership. */
  begin (record: RunRecord, hooks: RunLogHooks): void {
    const { log, patienceMs } = this.#ports
    this.topic.renew(epochOf(record, record.fence))
    this.#ports.audience.begin(record.fence)
    this.#isHolding = false
    this.#isTrue = false
    this.#held.clear()
    this.#size = 0
    this.topic.mayDeliver = () => this.#isTrue || (!this.#isSilent && hooks.isCertain())
    this.#now = performance.now()
    this.#writer = new Writer({
      log,
      patienceMs,
      key: record.key,
      fence: record.fence,
      limits: () => this.#limits(),
      last: () => this.topic.last,
      blockAfter: (seq) => this.topic.blockAfter(seq),
      onStored: (seq) => {
        // First: what is stored may be trimmed.
        this.#noteNew()
        this.topic.markStored(seq)
        this.#ports.audience.stored(seq)
        this.#saveFold(record, seq)
      },
      ...hooks
    })
  }

  /** What its events fold into, for whoever goes on with it. */
  get fold (): FoldKeeper | undefined {
    return this.#fold
  }

  /** Whether more is held than a barrier takes. */
  get isFull (): boolean {
    return this.#held.isFull
  }

  /** Characters of payload that came under this ownership, told or held. */
  get size (): number {
    return this.#size
  }

  /** Our ownership is certain again: what was held back may go. */
  wake (): void {
    this.topic.wake()
  }

  /** Takes an event of the projection: numbers and tells it, or holds it. */
  readonly emit: Emit = (data, options) => {
    if (this.#isSilent) return
    const { event, level, isLine } = options ?? PLAIN
    const text = isLine === true || data.isWellFormed() ? data : data.toWellFormed()
    this.#size += text.length
    if (this.#isHolding) this.#held.add({ data: text, event, level, isLine })
    else {
      this.topic.add(text, options)
      this.#writer?.note(text.length, this.#now)
    }
  }

  /** The monotonic clock, for all that one event of the agent brings. */
  tick (now: number): void {
    this.#now = now
  }

  /** From here on nothing is told before it is stored; `event` is the first, or the next, of what is held. */
  hold (event?: EventInit): void {
    this.#isHolding = true
    if (event !== undefined) this.#held.add(event)
  }

  /** Forgets what is held. */
  clearHeld (): void {
    this.#held.clear()
  }

  /** Nothing is told or stored any more, whatever is emitted. */
  silence (): void {
    this.#isSilent = true
    this.#writer?.close()
  }

  /** What the agent has to wait for when its store is too far behind (R1). */
  storeReady (now: number): Promise<void> | undefined {
    return this.#writer?.ready(now)
  }

  /** Writes what is held together with the record (R3). Tell it afterwards. */
  async commit (record: RunRecord, part: BarrierPart): Promise<BarrierResult> {
    const { runs, patienceMs } = this.#ports
    const { last } = this.topic
    const events = this.#held.numbered(last)
    this.#noteNew()
    this.#fold?.note(events)
    // A short log is read from its start just as well.
    const fold = this.#fold?.isDue(last, this.#cadence) === true ? this.#fold.at(last + events.length) : undefined
    const result = await commitBarrier({ runs, patienceMs, writer: this.#writer }, record, {
      ...part, patch: { ...part.patch, ...this.#bytes(record) }, firstSeq: last + 1, events, limits: this.#limits(), ...fold !== undefined && { fold }
    })
    // What was noted for it will never be seen.
    if (result.kind !== 'ok') this.#fold = undefined
    else if (fold !== undefined) this.#fold?.saved(fold.seq)
    return result
  }

  /** What the run takes in the store from now on, where somebody counts: the log is trimmed there as it is here. */
  #bytes ({ bytes }: RunRecord): { readonly bytes?: number } {
    return bytes === undefined ? {} : { bytes: bytes + Math.min(this.#size, this.#replay.maxBytes) }
  }

  /** Tells what a barrier has stored. */
  tell (): void {
    this.#isTrue = true
    for (const event of this.#held.numbered(this.topic.last)) this.topic.append(event)
    this.#held.clear()
    this.topic.markStored(this.topic.last)
    this.#ports.audience.stored(this.topic.last)
    this.#writer?.close()
  }

  /** Tells the caller alone, who reads ahead of the store, and stores nothing. */
  tellUnstored (record: RunRecord, events: readonly EventInit[]): void {
    this.silence()
    // The store may hold the end whose acknowledgement was lost: who comes back is told that one, not taken to know it.
    this.topic.renew(unstoredEpochOf(record))
    this.#isTrue = true
    for (const event of events) this.topic.append(event)
  }

  /** R12: what a reader without a usable cursor is shown. */
  snapshot (record: RunRecord): Snapshot | undefined {
    if (this.#fold === undefined) return undefined
    const snapshot = this.#fold.snapshot(this.topic.stored, record)
    return { epoch: this.topic.epochAt(snapshot.seq), ...snapshot }
  }

  /** Has the fold take what has come since it was here last. */
  #noteNew (): void {
    const fold = this.#fold
    if (fold === undefined) return
    for (let block = this.topic.blockAfter(fold.noted); block !== undefined; block = this.topic.blockAfter(block.lastSeq)) fold.note(block)
  }

  #limits (): LogLimits {
    const { maxEvents, maxBytes } = this.#replay
    return { maxEvents, maxBytes, ...this.#fold !== undefined && { floor: this.#fold.savedSeq } }
  }

  #saveFold (record: RunRecord, seq: number): void {
    const keeper = this.#fold
    if (keeper === undefined || this.#isSavingFold || !keeper.isDue(seq, this.#cadence)) return
    const { log } = this.#ports
    const fold = keeper.at(seq)
    this.#isSavingFold = true
    log.saveFold(record.key, record.fence, fold).then((result) => {
      this.#isSavingFold = false
      if (result.kind === 'ok') keeper.saved(fold.seq)
    }, () => {
      // Tried again with the next events: until then the log keeps what is not folded.
      this.#isSavingFold = false
    })
  }
}
