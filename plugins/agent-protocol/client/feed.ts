import { type Backoff, NetTooLargeError, pause, type SseMessage, type SseReader } from '../../../lib/net/index.ts'
import { controlOf, decodeTaskEvent, parseTaskEvent, type TaskControl } from '../events.ts'
import { isFinal, type TaskEvent } from '../wire.ts'
import { isPassing, TaskAnswerError, TaskLostError } from './errors.ts'
import { backoffOf, insist, type Patience } from './insist.ts'
import { Pauses } from './pauses.ts'
import { Sequence } from './sequence.ts'
import { SilenceWatch } from './silence-watch.ts'
import { type TaskSnapshot } from './snapshot.ts'
import { type TaskApi } from './task-api.ts'
import { type TaskEnd, type TaskUpdate } from './task-update.ts'

/** What a {@link TaskFeed} needs to know. */
export interface FeedOptions extends Patience {
  readonly stream: boolean
  readonly silenceMs: number
  readonly pollMs: number
  readonly pollMaxMs: number
}

/** Milliseconds for what belongs together to arrive together. */
const MAX_SETTLE_MS = 400

/** Whether streams are opened: yes, no more because they brought nothing, or never. */
type Streaming = 'on' | 'useless' | 'off'

/** Reads one task from a sequence on, over as many connections as it takes. */
export class TaskFeed {
  readonly #api: TaskApi
  readonly #taskId: string
  readonly #options: FeedOptions
  readonly #sequence: Sequence
  readonly #pauses = new Pauses()
  readonly #backoff: Backoff
  readonly #polls: Backoff
  #streaming: Streaming
  #end: TaskEnd | undefined
  /** Why events are missing that no connection will bring, until it is told. */
  #lost: string | undefined
  #hasGap = false
  /** Milliseconds that the service wants to be left alone. */
  #askedMs = 0
  #hasDrained = false
  /** Events with neither number nor id were told: another connection would tell them again, and nobody would know. */
  #isBlind = false

  constructor (api: TaskApi, taskId: string, after: number, options: FeedOptions) {
    this.#api = api
    this.#taskId = taskId
    this.#options = options
    this.#sequence = new Sequence(after)
    this.#backoff = backoffOf(options)
    this.#polls = backoffOf({ ...options, retryBaseMs: options.pollMs, retryMaxMs: options.pollMaxMs })
    this.#streaming = options.stream ? 'on' : 'off'
  }

  /** Sequence of the newest event that was told. */
  get last (): number {
    return this.#sequence.last
  }

  /** What the task waited for was answered. */
  answered (): void {
    this.#pauses.forget()
    this.#polls.reset()
  }

  /**
   * Tells the task to its end; may be left and taken up again, one reader at a time.
   * @throws the last failure when the service cannot be reached or refuses, TaskLostError when it has forgotten the task
   */
  async * follow (signal: AbortSignal): AsyncGenerator<TaskUpdate, void, undefined> {
    while (this.#end === undefined) {
      if (this.#streaming === 'on') yield * this.#stream(signal)
      if (this.#end !== undefined) break
      const snapshot = await this.#look(signal)
      if (this.#isBehind(snapshot) && await this.#mayReadOn(snapshot, signal)) continue
      yield * this.#settle(snapshot, signal)
    }
    yield await this.#withResult(this.#end, signal)
  }

  /** What the snapshot says in place of the stream. */
  async * #settle (snapshot: TaskSnapshot, signal: AbortSignal): AsyncGenerator<TaskUpdate, void, undefined> {
    if (this.#lost !== undefined) yield this.#gap(this.#lost)
    if (isFinal(snapshot.status)) {
      const missed = this.#missing(snapshot)
      // Without a number of the newest event nobody knows: the end at least was not told.
      if (missed !== 0 && !this.#hasGap && this.#options.stream) yield this.#gap('cut', missed)
      this.#end = endOf(snapshot)
      return
    }
    if (snapshot.status === 'awaiting_confirm') {
      const pending = this.#pauses.tell(snapshot.pending)
      if (pending !== undefined) {
        this.#backoff.reset()
        yield { kind: 'waiting', pending, seq: Math.max(this.#sequence.last, snapshot.lastSeq ?? 0) }
        return
      }
    } else {
      this.#pauses.goOn()
    }
    if (this.#streaming === 'on' && this.#backoff.count + 1 >= this.#options.maxAttempts) this.#streaming = 'useless'
    await (this.#streaming === 'on' ? this.#retreat(signal) : pause(this.#polls.next(), signal))
  }

  async #look (signal: AbortSignal): Promise<TaskSnapshot> {
    const snapshot = await insist(() => this.#api.snapshot(this.#taskId, signal), this.#options, signal)
    // It was there when it was submitted, so it is gone for good.
    if (snapshot === undefined) throw new TaskLostError(this.#taskId)
    return snapshot
  }

  /** The service has told events that have not arrived. */
  #isBehind ({ lastSeq }: TaskSnapshot): boolean {
    return this.#streaming !== 'off' && lastSeq !== undefined && lastSeq > this.#sequence.last
  }

  /** Waits for the next connection; false when there were enough that brought nothing. */
  async #mayReadOn ({ status }: TaskSnapshot, signal: AbortSignal): Promise<boolean> {
    if (this.#backoff.count + 1 >= this.#options.maxAttempts) {
      // What is between may hold back a stream until it ends: one that ends at once comes through.
      if (!isFinal(status) || this.#hasDrained) return false
      this.#hasDrained = true
    }
    this.#streaming = 'on'
    await this.#retreat(signal)
    return true
  }

  async #retreat (signal: AbortSignal): Promise<void> {
    const askedMs = this.#askedMs
    this.#askedMs = 0
    await pause(this.#backoff.next(askedMs), signal)
  }

  #missing ({ lastSeq }: TaskSnapshot): number | undefined {
    return lastSeq === undefined ? undefined : Math.max(0, lastSeq - this.#sequence.last)
  }

  /** One connection, until it ends, is cut, or has brought a pause or the task's end. */
  async * #stream (signal: AbortSignal): AsyncGenerator<TaskUpdate, void, undefined> {
    const reader = await this.#open(signal)
    if (reader === undefined) return
    const watch = new SilenceWatch({
      silenceMs: this.#options.silenceMs,
      settleMs: Math.min(MAX_SETTLE_MS, this.#options.silenceMs),
      look: async (lookSignal) => this.#isOver(await this.#api.snapshot(this.#taskId, lookSignal)),
      onSilent: () => { reader.close() }
    })
    try {
      let isLast = false
      for (;;) {
        watch.listen(isLast)
        const message = await this.#next(reader, signal)
        watch.rest()
        if (message === undefined) return
        const event = parseTaskEvent(message.data)
        if (event === undefined) continue
        const updates = this.#take(event, seqOf(event, message))
        if (updates === undefined) return
        isLast = isLastForNow(event)
        yield * updates
        if (this.#end !== undefined || this.#pauses.isReady) return
      }
    } finally {
      watch.stop()
      reader.close()
      if (this.#isBlind && this.#end === undefined) this.#giveUp('unnumbered')
    }
  }

  async #open (signal: AbortSignal): Promise<SseReader | undefined> {
    try {
      const opened = await this.#api.events(this.#taskId, this.#sequence.last, signal)
      if (opened.kind === 'open') return opened.reader
      if (opened.kind === 'unsupported') this.#giveUp('unsupported')
    } catch (error) {
      this.#mayFail(error, signal)
    }
    return undefined
  }

  async #next (reader: SseReader, signal: AbortSignal): Promise<SseMessage | undefined> {
    try {
      return (await reader.next()).value
    } catch (error) {
      this.#mayFail(error, signal)
      return undefined
    }
  }

  /** What a connection dies of; the next one may live. @throws what is not the connection's fault */
  #mayFail (error: unknown, signal: AbortSignal): void {
    signal.throwIfAborted()
    // The same event would come again.
    if (error instanceof TaskAnswerError) this.#askedMs = error.retryAfterMs ?? 0
    if (error instanceof NetTooLargeError) this.#giveUp('too_large')
    else if (!isPassing(error)) throw error
  }

  #giveUp (why: string): void {
    this.#streaming = 'off'
    this.#lost = why
  }

  /** What an event tells; undefined when the connection has left something out and should be tried again. */
  #take (event: TaskEvent, seq: number | undefined): TaskUpdate[] | undefined {
    const control = controlOf(event)
    if (control?.kind === 'gap') return [this.#jump(control)]
    const decoded = decodeTaskEvent(event)
    const missing = this.#sequence.missingBefore(seq)
    const verdict = this.#sequence.take(seq, decoded[0]?.id)
    if (verdict === 'hole') return undefined
    if (verdict === 'duplicate') return []
    this.#backoff.reset()
    const updates: TaskUpdate[] = missing > 0 ? [this.#gap('lost', missing)] : []
    if (control !== undefined) this.#end = endOf(control)
    if (event.type === 'REQUIRE_CONFIRM' && event.status !== undefined) this.#pauses.commit()
    for (const found of decoded) {
      if (found.source === undefined && this.#pauses.take(found)) continue
      updates.push({ kind: 'event', event: found })
      this.#isBlind ||= !seq && found.id === undefined
    }
    return updates
  }

  /** The service does not go on where it was asked to. */
  #jump ({ oldestSeq = 1, reason = 'unknown' }: Extract<TaskControl, { kind: 'gap' }>): TaskUpdate {
    const { last } = this.#sequence
    const isAhead = reason !== 'evicted'
    this.#sequence.moveTo(Math.max(0, oldestSeq - 1))
    return this.#gap(reason, isAhead ? undefined : Math.max(0, oldestSeq - 1 - last))
  }

  #gap (reason: string, missed?: number): TaskUpdate {
    this.#hasGap = true
    this.#lost = undefined
    return { kind: 'gap', reason, ...missed !== undefined && { missed } }
  }

  /** Whether a silent stream has nothing to bring any more, or should have. */
  #isOver (snapshot: TaskSnapshot | undefined): boolean {
    return snapshot === undefined || isFinal(snapshot.status) || this.#isBehind(snapshot) ||
      (snapshot.status === 'awaiting_confirm' && !this.#pauses.isTold(snapshot.pending))
  }

  /** The reference tells a result only to who waits for it. */
  async #withResult (end: TaskEnd, signal: AbortSignal): Promise<TaskEnd> {
    if (end.status !== 'success' || end.result !== undefined) return end
    try {
      const waited = await insist(() => this.#api.wait(this.#taskId, 1, signal), this.#options, signal)
      return waited?.status === 'success' && waited.result !== undefined ? { ...end, result: waited.result } : end
    } catch {
      signal.throwIfAborted()
      return end // what the events told has to do
    }
  }
}

function seqOf ({ seq }: TaskEvent, { id }: SseMessage): number | undefined {
  return seq ?? (id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined)
}

/** Whether nothing should follow an event for a while: the task's end or its pause come right behind it. */
function isLastForNow ({ type, status }: TaskEvent): boolean {
  return type === 'RUN_FINISHED' || (type === 'REQUIRE_CONFIRM' && status !== undefined)
}

function endOf (said: TaskSnapshot | Exclude<TaskControl, { kind: 'gap' }>): TaskEnd {
  if ('kind' in said && said.kind === 'error') return { kind: 'end', status: 'error', error: said.error, ...said.code !== undefined && { code: said.code } }
  switch (said.status) {
    case 'success': return { kind: 'end', status: 'success', ...said.result !== undefined && { result: said.result } }
    case 'cancelled': return { kind: 'end', status: 'cancelled' }
    default: return { kind: 'end', status: 'error', error: 'error' in said && said.error !== undefined ? said.error : 'error', ...'code' in said && said.code !== undefined && { code: said.code } }
  }
}
