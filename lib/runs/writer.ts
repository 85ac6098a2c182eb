import { type EventLog, type LogEvent, type LogLimits, type RunKey } from '../stores/index.ts'
import { deferred, type Deferred } from './deferred.ts'

/** How far a run may be ahead of its stored log before its agent waits (R1). */
export const MAX_AHEAD_BYTES = 256 * 1024
/** How long, in milliseconds (R1). */
export const MAX_AHEAD_MS = 2_000
/** Payload bytes of one append (R6). */
const MAX_ENTRY_BYTES = 32 * 1024
const FIRST_RETRY_MS = 25
const LAST_RETRY_MS = 500

/** What the writer tells the run. None of these may throw. */
export interface WriterHooks {
  /** Everything up to `seq` is stored. */
  onStored (seq: number): void
  /** Somebody else owns the run, or it is gone: tell nothing any more. */
  onLost (): void
  /** The store has been away for longer than R9 allows. */
  onUnavailable (): void
}

/** Where and how a writer stores. */
export interface WriterOptions extends WriterHooks {
  readonly log: EventLog
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  readonly key: RunKey
  readonly fence: number
  /** Asked at each append: the floor moves with the stored fold. */
  limits (): LogLimits
  /** Events after a sequence that are still in memory, for a backend that lost what it had acknowledged (R9). */
  history (after: number): readonly LogEvent[]
}

/**
 * Stores one ownership's events in order, one append in flight, everything that arrived meanwhile in the next one (R6).
 * Never awaited per event: `ready` tells when the agent has to wait.
 */
export class Writer {
  readonly #options: WriterOptions
  #queue: LogEvent[] = []
  #batch: readonly LogEvent[] | undefined
  #aheadBytes = 0
  #batchSince = 0
  #queueSince = 0
  #retryMs = FIRST_RETRY_MS
  #isScheduled = false
  #isClosed = false
  #retry: NodeJS.Timeout | undefined
  #waiting: Deferred<void> | undefined
  #flushed: Deferred<boolean> | undefined

  constructor (options: WriterOptions) {
    this.#options = options
  }

  /** Whether it has given up, or was closed. */
  get isClosed (): boolean {
    return this.#isClosed
  }

  /** Adds an event; `now` is the monotonic clock. */
  push (event: LogEvent, now: number): void {
    if (this.#isClosed) return
    if (this.#queue.length === 0) this.#queueSince = now
    this.#queue.push(event)
    this.#aheadBytes += event.data.length
    if (this.#batch === undefined) this.#schedule()
  }

  /** `undefined` = go on; otherwise wait: the store is too far behind. */
  ready (now: number): Promise<void> | undefined {
    if (!this.#isBehind(now)) return undefined
    this.#waiting ??= deferred<void>()
    return this.#waiting.promise
  }

  /** True when everything pushed is stored; false when it never will be by this writer. */
  flush (): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false)
    if (this.#batch === undefined && this.#queue.length === 0) return Promise.resolve(true)
    this.#flushed ??= deferred<boolean>()
    return this.#flushed.promise
  }

  /** Stores nothing more, and lets everybody go who waits. */
  close (): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#queue = []
    clearTimeout(this.#retry)
    this.#wake()
    this.#flushed?.resolve(false)
  }

  /** Stores again what a backend lost: everything in memory after `last`. False when that is no longer there. */
  rewind (last: number): boolean {
    const events = this.#options.history(last)
    if (events[0]?.seq !== last + 1) return false
    this.#batch = undefined
    this.#queue = [...events]
    this.#queueSince = performance.now()
    this.#aheadBytes = events.reduce((bytes, event) => bytes + event.data.length, 0)
    this.#send()
    return true
  }

  #isBehind (now: number): boolean {
    if (this.#isClosed || this.#oldest === undefined) return false
    return this.#aheadBytes > MAX_AHEAD_BYTES || now - this.#oldest > MAX_AHEAD_MS
  }

  /** When the oldest event that is not stored arrived. */
  get #oldest (): number | undefined {
    if (this.#batch !== undefined) return this.#batchSince
    return this.#queue.length > 0 ? this.#queueSince : undefined
  }

  /** After the microtasks: what a burst of the agent yields goes into one entry, however fast the store answers. */
  #schedule (): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    process.nextTick(this.#send)
  }

  readonly #send = (): void => {
    this.#isScheduled = false
    const [first] = this.#queue
    if (this.#isClosed || this.#batch !== undefined || first === undefined) return
    const batch = this.#batch = this.#take()
    this.#batchSince = this.#queueSince
    if (this.#queue.length > 0) this.#queueSince = performance.now()
    this.#append(first.seq, batch)
  }

  #take (): readonly LogEvent[] {
    let bytes = 0
    let count = 0
    for (const event of this.#queue) {
      bytes += event.data.length
      if (count > 0 && bytes > MAX_ENTRY_BYTES) break
      count++
    }
    if (count === this.#queue.length) {
      const all = this.#queue
      this.#queue = []
      return all
    }
    return this.#queue.splice(0, count)
  }

  #append (firstSeq: number, batch: readonly LogEvent[]): void {
    const { log, key, fence, patienceMs } = this.#options
    log.append(key, fence, firstSeq, batch, this.#options.limits()).then((result) => {
      if (this.#isClosed || this.#batch !== batch) return
      switch (result.kind) {
        case 'ok': this.#onStored(batch); break
        case 'misplaced': if (!this.rewind(result.last)) this.#giveUp(); break
        case 'fenced':
        case 'gone': this.close(); this.#options.onLost()
      }
    }, () => {
      if (this.#isClosed || this.#batch !== batch) return
      if (performance.now() - this.#batchSince >= patienceMs) { this.#giveUp(); return }
      // The same entry again: if only its acknowledgement was lost, the store says so (R5).
      this.#retry = setTimeout(() => { this.#append(firstSeq, batch) }, this.#retryMs).unref()
      this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS)
    })
  }

  #onStored (batch: readonly LogEvent[]): void {
    let seq = 0
    for (const event of batch) {
      this.#aheadBytes -= event.data.length
      seq = event.seq
    }
    this.#batch = undefined
    this.#retryMs = FIRST_RETRY_MS
    this.#options.onStored(seq)
    if (this.#queue.length > 0) this.#schedule()
    if (!this.#isBehind(performance.now())) this.#wake()
    if (this.#batch === undefined && this.#queue.length === 0) {
      const flushed = this.#flushed
      this.#flushed = undefined
      flushed?.resolve(true)
    }
  }

  #giveUp (): void {
    this.close()
    this.#options.onUnavailable()
  }

  #wake (): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve()
  }
}
