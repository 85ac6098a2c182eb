import { type ServerResponse } from 'node:http'
import { type Socket } from 'node:net'
import type { Attachment, AttachmentEnd, AttachOptions, Cursor, Gap, GapAnswer, Sink, Topic } from '../bus/index.ts'
import { type SseEnd, SseEndedError, SseFollowError } from './errors.ts'
import { sendHead, type SseReply } from './headers.ts'
import { type StreamObserver, type StreamOutcome } from './observer.ts'
import { type SseView } from './view.ts'
import { type Wheel, WheelEntry } from './wheel.ts'
import { type ChunkFramer, connectionOf, corkTick, keepAlive, takesChunks } from './wire.ts'

/** How {@link SseResponse.follow} reads a topic; the view is one of {@link sseView} if the stream is to end with a cursor. */
export interface SseFollowOptions extends Omit<AttachOptions, 'sink'> {
  /** Gives the frames (from {@link encodeFrame}) that stand in the place of events the client cannot have any more. */
  gap? (gap: Gap, topic: Topic): GapAnswer
}

/** What a response takes from its hub. Times are in ticks of the wheel, 0 for none. */
export interface SseResponseOwner {
  readonly wheel: Wheel
  readonly framer: ChunkFramer
  readonly heartbeat: Buffer
  readonly heartbeatTicks: number
  readonly writeTicks: number
  readonly streamTicks: number
  /** Block that ends a stream which the client may take up again. */
  farewell (cursorId: string | undefined, why: 'timeout' | 'closed' | 'lagged' | 'stopped'): string
  onClosed (response: SseResponse): void
}

/** Stands for the topic that a stream which is over does not follow. */
const NO_ATTACHMENT: Attachment = { cursor: { seq: 0 }, lagBytes: 0, resume: ignore, close: ignore }

/**
 * One open event stream, made by {@link SseHub.open}. It owns `reply.raw` from then on: nobody else may write to it.
 *
 * The client's going shows on the response alone (`close` before everything was written); the request's own `close`
 * fires on a POST as soon as its body has been read.
 */
export class SseResponse {
  /** The request was a HEAD: headers have gone out, nothing is to be started. */
  readonly isHead: boolean
  readonly #raw: ServerResponse
  readonly #owner: SseResponseOwner
  readonly #observer: StreamObserver | undefined
  readonly #entry: WheelEntry
  readonly #openedAt: number
  readonly #onDrain = (): void => { this.#drained() }
  /** The socket, where chunks may go straight to it. */
  #direct: Socket | undefined
  #open = true
  #why: SseEnd = 'ended'
  /** What `#why` does not say. */
  #outcome: StreamOutcome | undefined
  #done: SseEnd | undefined
  #wroteAt: number
  #blocked = false
  #waitingSince = 0
  #attachment: Attachment | undefined
  #view: Partial<SseView> | undefined
  // Made on demand: a stream that only follows a topic needs neither.
  #abort: AbortController | undefined
  #closed: { readonly promise: Promise<SseEnd>, readonly resolve: (end: SseEnd) => void } | undefined

  constructor (reply: SseReply, owner: SseResponseOwner, observer?: StreamObserver) {
    this.#observer = observer
    this.#raw = reply.raw as ServerResponse // HTTP/2's has every member used here; only its types say less
    this.#owner = owner
    this.#openedAt = this.#wroteAt = owner.wheel.now
    this.#entry = new WheelEntry((now) => this.#visit(now))
    this.isHead = reply.request.method === 'HEAD'
    this.#raw.on('close', () => this.#onClose())
    // Node reports a broken connection here as well; `close` follows and is what counts.
    this.#raw.on('error', ignore)
    this.#raw.on('drain', this.#onDrain)
    const connection = connectionOf(this.#raw)
    if (connection !== undefined) corkTick(connection)
    sendHead(reply)
    if (connection !== undefined) {
      // Heartbeats find out by themselves.
      if (owner.heartbeatTicks === 0) keepAlive(connection)
      if (takesChunks(this.#raw)) this.#direct = connection
    }
    if (this.isHead) this.end()
    else this.#reschedule(owner.wheel.now)
    // Its `close` came before anybody listened: the client left while the answer was prepared.
    if (isClosed(this.#raw)) process.nextTick(() => this.#onClose())
  }

  /** Whether the stream takes further writes. */
  get isOpen (): boolean {
    return this.#open
  }

  /** Fires when the stream ends in any way but `end()`; the reason is an {@link SseEndedError} that tells which. */
  get signal (): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#why !== 'ended') this.#abort.abort(new SseEndedError(this.#why))
    }
    return this.#abort.signal
  }

  /** Resolves when the connection has let go of the stream; never rejects. */
  get closed (): Promise<SseEnd> {
    if (this.#done !== undefined) return Promise.resolve(this.#done)
    if (this.#closed === undefined) {
      let resolve: (end: SseEnd) => void = ignore
      const promise = new Promise<SseEnd>((_resolve) => { resolve = _resolve })
      this.#closed = { promise, resolve }
    }
    return this.#closed.promise
  }

  /** Bytes written that the connection has not taken yet. */
  get pendingBytes (): number {
    return this.#raw.writableLength
  }

  /**
   * Writes whole frames. False: write nothing more until the connection has drained (`follow()` does that by itself), or
   * the stream is over; in both cases the chunk is dealt with.
   */
  write (chunk: Uint8Array | string): boolean {
    if (!this.#open) return false
    this.#wroteAt = this.#owner.wheel.now
    if (this.#raw.write(chunk)) return true
    this.#block()
    return false
  }

  /** Ends the stream after a last frame, if one is given. Does nothing on a stream that is over. */
  end (last?: string): void {
    if (!this.#open) return
    this.#open = false
    if (last === undefined) this.#raw.end()
    else this.#raw.end(last)
    // Whoever does not take the rest is still given up on.
    this.#block()
  }

  /** For who found out before following: the observer is told of events that the client asked for and can not have. */
  noteGap (reason: Gap['reason']): void {
    this.#observer?.gap?.(reason)
  }

  /** Ends the stream for the hub's sake, with a cursor the client can come back with. */
  close (): void {
    if (!this.#open) return
    this.#farewell('closed')
  }

  /** Drops the connection without another byte. */
  destroy (why: SseEnd): void {
    if (this.#done !== undefined) return
    this.#open = false
    if (why === 'timeout') this.#outcome ??= 'write-timeout'
    this.#fire(why)
    this.#raw.destroy()
  }

  /**
   * Writes a topic's events from the cursor on and ends with the topic. The connection's backpressure is the
   * attachment's: nothing is queued here. One topic a response; a stream that is over (a HEAD's, too) is not attached.
   *
   * @throws AGT_ERR_SSE_FOLLOWING
   */
  follow (topic: Topic, options: SseFollowOptions): Attachment {
    if (this.#attachment !== undefined) throw new SseFollowError()
    if (!this.#open) return NO_ATTACHMENT
    const { view, after, from, upTo, lossless, maxLagBytes, wrap, gap } = options
    this.#view = view
    // Member by member: copying an object costs as much as attaching.
    const attachment = topic.attach({ view, after, from, upTo, lossless, maxLagBytes, wrap, sink: new SseResponse.#Sink(this, topic, gap) })
    this.#attachment = attachment
    if (!this.#open) this.#detach()
    return attachment
  }

  /** Where the bytes of the followed topic go. A class: closures would be most of what a waiting stream costs here. */
  static readonly #Sink = class implements Sink {
    readonly #response: SseResponse
    readonly #topic: Topic
    readonly #gap: SseFollowOptions['gap']

    constructor (response: SseResponse, topic: Topic, gap: SseFollowOptions['gap']) {
      this.#response = response
      this.#topic = topic
      this.#gap = gap
    }

    write (chunk: Uint8Array, isLast: boolean): boolean {
      return this.#response.#deliver(chunk, isLast)
    }

    gap (missing: Gap): GapAnswer | void {
      this.#response.noteGap(missing.reason)
      return this.#gap?.(missing, this.#topic)
    }

    end (why: AttachmentEnd, cursor: Cursor): void {
      this.#response.#topicEnded(why, cursor)
    }
  }

  #topicEnded (why: AttachmentEnd, cursor: Cursor): void {
    if (why === 'complete') {
      this.end()
      return
    }
    this.#outcome ??= why
    this.end(this.#owner.farewell(this.#view?.cursorId?.(cursor), why === 'lagged' ? why : 'stopped'))
  }

  /** The hot path: one chunk of a topic to one reader. */
  #deliver (chunk: Uint8Array, isLast: boolean): boolean {
    const direct = this.#direct
    const { framer, wheel } = this.#owner
    if (direct === undefined || !this.#open || !framer.takes(chunk)) return this.write(chunk)
    this.#wroteAt = wheel.now
    if (isLast) corkTick(direct)
    if (direct.write(framer.frame(chunk))) return true
    direct.once('drain', this.#onDrain)
    this.#block()
    return false
  }

  /** Ends a stream that the client may take up again. */
  #farewell (why: 'timeout' | 'closed'): void {
    const cursor = this.#attachment?.cursor
    this.end(this.#owner.farewell(cursor === undefined ? undefined : this.#view?.cursorId?.(cursor), why))
    this.#fire(why)
    this.#detach()
  }

  #detach (): void {
    this.#attachment?.close()
  }

  #block (): void {
    if (this.#blocked) return
    this.#blocked = true
    this.#waitingSince = this.#owner.wheel.now
    this.#reschedule(this.#waitingSince)
  }

  #drained (): void {
    if (!this.#open) return
    this.#blocked = false
    this.#wroteAt = this.#owner.wheel.now
    this.#reschedule(this.#wroteAt)
    this.#attachment?.resume()
  }

  #onClose (): void {
    if (this.#done !== undefined) return
    // Of a stream that was cut, HTTP/2's response says that it has finished; that `end()` was called is our own knowledge.
    if ((this.#open || !this.#raw.writableFinished) && this.#why === 'ended') this.#fire('disconnected')
    this.#open = false
    this.#done = this.#why
    this.#owner.wheel.remove(this.#entry)
    this.#direct?.off('drain', this.#onDrain)
    this.#detach()
    this.#closed?.resolve(this.#done)
    // A client that goes while its goodbye is on its way was sent away all the same.
    this.#observer?.closed(this.#outcome ?? (this.#done === 'timeout' ? 'stream-timeout' : this.#done))
    this.#owner.onClosed(this)
  }

  #fire (why: SseEnd): void {
    if (this.#why !== 'ended' || why === 'ended') return
    this.#why = why
    this.#abort?.abort(new SseEndedError(why))
  }

  #reschedule (now: number): void {
    const ticks = this.#nextVisit(now)
    if (ticks > 0 && (this.#entry.slot === -1 || this.#entry.due > now + ticks)) this.#owner.wheel.schedule(this.#entry, ticks)
  }

  /** Ticks to the nearest deadline; 0 when there is none. */
  #nextVisit (now: number): number {
    const { heartbeatTicks, writeTicks, streamTicks } = this.#owner
    const waits = this.#blocked
    const idle = waits ? writeTicks : heartbeatTicks
    const since = waits ? this.#waitingSince : this.#wroteAt
    const left = idle === 0 ? Infinity : Math.max(1, since + idle - now)
    const whole = streamTicks === 0 ? Infinity : Math.max(1, this.#openedAt + streamTicks - now)
    const next = Math.min(left, whole)
    return next === Infinity ? 0 : next
  }

  #visit (now: number): number {
    const { heartbeat, heartbeatTicks, writeTicks, streamTicks } = this.#owner
    if (streamTicks > 0 && now - this.#openedAt >= streamTicks && this.#open) {
      this.#farewell('timeout')
    }
    if (this.#blocked) {
      if (writeTicks > 0 && now - this.#waitingSince >= writeTicks) {
        this.destroy('timeout')
        return 0
      }
    } else if (heartbeatTicks > 0 && now - this.#wroteAt >= heartbeatTicks) {
      this.write(heartbeat)
    }
    return this.#nextVisit(now)
  }
}

/** Whether the connection has let go of the response already. */
function isClosed (raw: ServerResponse & { readonly stream?: { readonly closed: boolean } }): boolean {
  return (raw.stream ?? raw).closed
}

function ignore (): void {}
