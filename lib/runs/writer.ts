import { type EventBlock } from '../bus/index.ts'
import { type EventLog, type LogLimits, type RunKey } from '../stores/index.ts'
import { deferred, type Deferred } from './deferred.ts'

/** How far a run may be ahead of its stored log before its agent waits (R1). */
export const MAX_AHEAD_BYTES = 256 * 1024
/** How long, in milliseconds (R1). */
export const MAX_AHEAD_MS = 2_000
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
  /** Sequence of the newest event. What is there when the writer is made counts as stored. */
  last (): number
  /** The events that follow a sequence, as far as one append takes them (R6) and they are still in memory. */
  blockAfter (seq: number): EventBlock | undefined
}

/**
 * Stores one ownership's events in order, one append in flight, everything that arrived meanwhile in the next one (R6).
 * It holds none of them: a cursor into the log says how far it is. Never awaited per event: `ready` tells when the agent has to wait.
 */
export class Writer {
  readonly #options: WriterOptions
  /** Last event that was taken for an append. */
  #sent: number
  #batch: EventBlock | undefined
  #aheadBytes = 0
  #batchSince = 0
  #waitingSince = 0
  #retryMs = FIRST_RETRY_MS
  #isScheduled = false
  #isClosed = false
  #retry: NodeJS.Timeout | undefined
  #waiting: Deferred<void> | undefined
  #flushed: Deferred<boolean> | undefined

  constructor (options: WriterOptions) {
    this.#options = options
    this.#sent = options.last()
  }

  /** Whether it has given up, or was closed. */
  get isClosed (): boolean {
    return this.#isClosed
  }

  /** An event has come, with a payload of so many bytes; `now` is the monotonic clock. */
  note (bytes: number, now: number): void {
    if (this.#isClosed) return
    this.#aheadBytes += bytes
    if (this.#isScheduled) return
    if (this.#batch === undefined) this.#schedule(now)
    else if (this.#waitingSince === 0) this.#waitingSince = now
  }

  /** `undefined` = go on; otherwise wait: the store is too far behind. */
  ready (now: number): Promise<void> | undefined {
    if (!this.#isBehind(now)) return undefined
    this.#waiting ??= deferred<void>()
    return this.#waiting.promise
  }

  /** True when everything in the log is stored; false when it never will be by this writer. */
  flush (): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false)
    if (this.#batch === undefined && !this.#hasMore) return Promise.resolve(true)
    this.#flushed ??= deferred<boolean>()
    return this.#flushed.promise
  }

  /** Stores nothing more, and lets everybody go who waits. */
  close (): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#retry)
    this.#wake()
    this.#flushed?.resolve(false)
  }

  /** Stores again what a backend lost: everything in memory after `last`. False when that is no longer there. */
  rewind (last: number): boolean {
    const { blockAfter } = this.#options
    if (blockAfter(last)?.firstSeq !== last + 1) return false
    this.#aheadBytes = 0
    for (let block = blockAfter(last); block !== undefined; block = blockAfter(block.lastSeq)) this.#aheadBytes += block.size
    this.#batch = undefined
    this.#sent = last
    this.#waitingSince = performance.now()
    this.#send()
    return true
  }

  get #hasMore (): boolean {
    return this.#options.last() > this.#sent
  }

  #isBehind (now: number): boolean {
    if (this.#isClosed || this.#oldest === undefined) return false
    return this.#aheadBytes > MAX_AHEAD_BYTES || now - this.#oldest > MAX_AHEAD_MS
  }

  /** When the oldest event that is not stored arrived. */
  get #oldest (): number | undefined {
    if (this.#batch !== undefined) return this.#batchSince
    return this.#isScheduled ? this.#waitingSince : undefined
  }

  /** After the microtasks: what a burst of the agent yields goes into one entry, however fast the store answers. */
  #schedule (since: number): void {
    this.#isScheduled = true
    this.#waitingSince = since
    process.nextTick(this.#send)
  }

  readonly #send = (): void => {
    this.#isScheduled = false
    if (this.#isClosed || this.#batch !== undefined) return
    const batch = this.#options.blockAfter(this.#sent)
    if (batch === undefined) {
      // The log was taken away with events in it that are not stored.
      if (this.#hasMore) this.#giveUp()
      return
    }
    this.#batch = batch
    this.#batchSince = this.#waitingSince
    this.#waitingSince = this.#hasMore ? performance.now() : 0
    this.#sent = batch.lastSeq
    this.#append(batch.firstSeq, batch)
  }

  #append (firstSeq: number, batch: EventBlock): void {
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

  #onStored (batch: EventBlock): void {
    this.#aheadBytes -= batch.size
    this.#batch = undefined
    this.#retryMs = FIRST_RETRY_MS
    this.#options.onStored(batch.lastSeq)
    const hasMore = this.#hasMore
    if (hasMore && !this.#isScheduled) this.#schedule(this.#waitingSince)
    if (!this.#isBehind(performance.now())) this.#wake()
    if (!hasMore) {
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
