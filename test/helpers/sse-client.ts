import { request as httpRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'

/** One block of an event stream as a client reads it (WHATWG HTML, 9.2.6), with the bytes it came in. */
export interface ReceivedFrame {
  /** The whole block with its closing blank line, exactly as received. */
  readonly raw: string
  /** `id` of this block; undefined if it has none. */
  readonly id: string | undefined
  readonly event: string | undefined
  /** `data` lines joined by `\n`; undefined for a block that is not dispatched. */
  readonly data: string | undefined
  readonly retry: number | undefined
  readonly comments: readonly string[]
}

/** What {@link connect} needs beside method and path. */
export interface ConnectOptions {
  readonly port: number
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** A string or bytes are sent as they are, anything else as JSON with its content type. */
  readonly body?: unknown
}

/**
 * Opens a stream over a connection of its own and resolves with its head. Never reconnects; ends when the server ends it
 * or the test calls `destroy()`. Reading starts with the first call of `frames`, `text()` or `chunks`; before that nothing
 * is taken from the socket, so a test can stall from the first byte on.
 */
export async function connect (method: string, path: string, options: ConnectOptions): Promise<SseClient> {
  const json = options.body !== undefined && typeof options.body !== 'string' && !(options.body instanceof Uint8Array)
  const body = json ? JSON.stringify(options.body) : options.body as string | Uint8Array | undefined
  const request = httpRequest({
    method,
    path,
    host: options.host ?? '127.0.0.1',
    port: options.port,
    agent: false,
    headers: {
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...(json ? { 'content-type': 'application/json' } : {}),
      ...options.headers
    }
  })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('error', reject)
    request.once('response', (message) => {
      request.off('error', reject)
      request.on('error', () => {}) // a reset later on shows in `closed`
      resolve(message)
    })
    request.end(body)
  })
  return new SseClient(request, response)
}

/** One open response, read as bytes, text or frames. Only one way of reading a client. */
export class SseClient implements AsyncDisposable {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  /** Resolves when the connection is gone: 'ended' after a complete response, 'cut' otherwise. Does not start reading. */
  readonly closed: Promise<'ended' | 'cut'>
  /** Each frame as it comes; ends with the response, also with a cut one. */
  readonly frames: AsyncGenerator<ReceivedFrame, void, undefined>
  /** Bytes of the body so far. */
  bytes = 0
  readonly #request: ClientRequest
  readonly #response: IncomingMessage
  #received = ''
  #paused: { readonly promise: Promise<void>, readonly go: () => void } | undefined

  constructor (request: ClientRequest, response: IncomingMessage) {
    this.#request = request
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    this.rawHeaders = response.rawHeaders
    response.on('error', () => {}) // 'aborted': shows in `closed`
    this.closed = new Promise((resolve) => {
      response.once('close', () => { resolve(response.complete ? 'ended' : 'cut') })
    })
    this.frames = this.#readFrames()
  }

  /** Everything received so far, as text. */
  get received (): string {
    return this.#received
  }

  /** Whether the body was received to its end. */
  get complete (): boolean {
    return this.#response.complete
  }

  /** The next frame; throws when the stream ends instead. */
  async next (): Promise<ReceivedFrame> {
    const { value, done } = await this.frames.next()
    if (done === true) throw new Error(`The stream ended; received: ${JSON.stringify(this.#received)}`)
    return value
  }

  /** The next `count` frames. */
  async take (count: number): Promise<ReceivedFrame[]> {
    const frames: ReceivedFrame[] = []
    while (frames.length < count) frames.push(await this.next())
    return frames
  }

  /** Frames up to and with the first that fits. */
  async until (fits: (frame: ReceivedFrame) => boolean): Promise<ReceivedFrame[]> {
    const frames: ReceivedFrame[] = []
    do frames.push(await this.next()); while (!fits(frames[frames.length - 1] as ReceivedFrame))
    return frames
  }

  /** All frames that are still to come, up to the end of the stream. */
  async rest (): Promise<ReceivedFrame[]> {
    const frames: ReceivedFrame[] = []
    for await (const frame of this.frames) frames.push(frame)
    return frames
  }

  /** The whole body as text, to its end (also of a cut response). */
  async text (): Promise<string> {
    for await (const _ of this.#readText()); // eslint-disable-line @typescript-eslint/no-unused-vars
    return this.#received
  }

  /** The whole body as JSON. */
  async json (): Promise<unknown> {
    return JSON.parse(await this.text())
  }

  /** Drops the connection at once, as a closed tab does, and resolves when it is gone. */
  async destroy (): Promise<void> {
    this.#response.destroy() // before the request, which would only read on to an end that may have come already
    this.#request.destroy()
    await this.closed
  }

  /** Drops the connection with a TCP reset, as a crashed peer does. */
  async reset (): Promise<void> {
    this.#response.socket.resetAndDestroy()
    await this.closed
  }

  /** Takes nothing more from the socket until `resume()`; the peer's buffers fill. */
  pause (): void {
    if (this.#paused !== undefined) return
    let go: () => void = () => {}
    const promise = new Promise<void>((resolve) => { go = resolve })
    this.#paused = { promise, go }
    this.#response.pause()
  }

  resume (): void {
    this.#paused?.go()
    this.#paused = undefined
  }

  async [Symbol.asyncDispose] (): Promise<void> {
    if (!this.#response.closed) await this.destroy()
  }

  async * #readText (): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    try {
      for await (const chunk of this.#response) {
        this.bytes += (chunk as Buffer).length
        const text = decoder.decode(chunk as Buffer, { stream: true })
        this.#received += text
        yield text
        while (this.#paused !== undefined) await this.#paused.promise
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET' && (error as Error).name !== 'AbortError') throw error
    }
  }

  async * #readFrames (): AsyncGenerator<ReceivedFrame, void, undefined> {
    const parser = new FrameParser()
    for await (const text of this.#readText()) yield * parser.push(text)
  }
}

const BLANK_LINE = /(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r(?!\n)|\n)/

/** Splits text into frames by the WHATWG line grammar (LF, CR and CRLF end a line). */
export class FrameParser {
  #rest = ''

  /** Frames that are complete with this piece of text. */
  push (text: string): ReceivedFrame[] {
    this.#rest += text
    const frames: ReceivedFrame[] = []
    for (;;) {
      const end = BLANK_LINE.exec(this.#rest)
      if (end === null) return frames
      const length = end.index + end[0].length
      frames.push(parseFrame(this.#rest.slice(0, length)))
      this.#rest = this.#rest.slice(length)
    }
  }
}

/** Reads a whole text, as from `inject()`. An unfinished last block is left out, as a client does. */
export function parseFrames (text: string): ReceivedFrame[] {
  return new FrameParser().push(text)
}

function parseFrame (raw: string): ReceivedFrame {
  let id: string | undefined
  let event: string | undefined
  let retry: number | undefined
  const data: string[] = []
  const comments: string[] = []
  for (const line of raw.split(/\r\n|\r|\n/)) {
    if (line === '') continue
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (colon === 0) comments.push(value)
    else if (field === 'data') data.push(value)
    else if (field === 'event') event = value
    else if (field === 'id' && !value.includes('\0')) id = value
    else if (field === 'retry' && /^\d+$/.test(value)) retry = Number(value)
  }
  return { raw, id, event, data: data.length === 0 ? undefined : data.join('\n'), retry, comments }
}
