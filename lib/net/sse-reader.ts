import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { NetTimeoutError, NetTooLargeError } from './errors.ts'
import { type HttpResponse } from './http-request.ts'

/** A dispatched event: its own id, its name and its data. */
export interface SseMessage {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

/** Options of {@link SseReader}. */
export interface SseReaderOptions {
  /** Size of one event at which the stream is given up; what a single read brings on top of it may stand in memory too. */
  readonly maxEventBytes: number
  /** Milliseconds without a single byte, heartbeats included, after which the connection counts as dead; 0 = no limit. */
  readonly idleMs: number
}

/**
 * Reads an event stream, event by event; never reconnects. Takes from the socket only what is asked for, so a slow consumer slows
 * the server. Ends with the response; throws when that is cut, stays silent or sends too much, or its signal fires.
 */
export class SseReader implements AsyncIterableIterator<SseMessage> {
  readonly #response: HttpResponse
  readonly #options: SseReaderOptions
  readonly #chunks: AsyncGenerator<Buffer, void, undefined>
  readonly #decoder = new TextDecoder()
  readonly #parser
  readonly #messages: EventSourceMessage[] = []
  #head = 0
  #isOver = false
  #retryMs: number | undefined

  constructor (response: HttpResponse, options: SseReaderOptions) {
    this.#response = response
    this.#options = options
    this.#chunks = response.body()
    this.#parser = createParser({
      maxBufferSize: options.maxEventBytes,
      onEvent: (message) => { this.#messages.push(message) },
      onRetry: (ms) => { this.#retryMs = ms },
      onError: (error) => { if (error.type === 'max-buffer-size-exceeded') this.#overflow() }
    })
  }

  /** Milliseconds that the server asks for before a reconnect. */
  get retryMs (): number | undefined {
    return this.#retryMs
  }

  async next (): Promise<IteratorResult<SseMessage, undefined>> {
    for (;;) {
      const message = this.#messages[this.#head]
      if (message !== undefined) {
        this.#head++
        if (message.data.length > this.#options.maxEventBytes) throw this.#overflow()
        return { done: false, value: { id: message.id, event: message.event, data: message.data } }
      }
      this.#messages.length = this.#head = 0
      if (this.#isOver) return { done: true, value: undefined }
      await this.#read()
    }
  }

  /** Gives the connection back. A pending `next()` rejects with the error, or with that the connection was closed. */
  close (error?: Error): void {
    this.#response.close(error)
  }

  async return (): Promise<IteratorResult<SseMessage, undefined>> {
    this.#isOver = true
    this.#messages.length = this.#head = 0
    this.close()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  async #read (): Promise<void> {
    const { idleMs } = this.#options
    const timer = idleMs === 0 ? undefined : setTimeout(() => { this.close(new NetTimeoutError(this.#response.address, 'byte', idleMs)) }, idleMs).unref()
    try {
      const { done, value } = await this.#chunks.next()
      // An event without its blank line is none (WHATWG HTML 9.2.6).
      if (done === true) this.#isOver = true
      else this.#parser.feed(this.#decoder.decode(value, { stream: true }))
    } catch (error) {
      this.#isOver = true
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** The parser keeps nothing of an event that is too large, and neither does the connection. */
  #overflow (): Error {
    const error = new NetTooLargeError(this.#response.address, 'an event', this.#options.maxEventBytes)
    this.close(error)
    return error
  }
}
