import { type Agent as HttpAgent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { NetTimeoutError, NetworkError } from './errors.ts'

/** One request. Redirects are never followed: a 3xx is an answer like any other. */
export interface HttpRequest {
  readonly method: string
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Ends the request, and the response with it, whenever it fires. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds until the head of the response must be there; 0 = no limit. */
  readonly headersTimeoutMs: number
  /** Connections to use. @default node's own, which keeps them alive */
  readonly agent?: HttpAgent | undefined
}

/**
 * Sends a request and resolves with the head of its response. Made on `node:http`: it opens no connection but the one that was
 * asked for (fetch opens a second one after an abort), and `close()` gives the socket back at once.
 *
 * @throws NetworkError, NetTimeoutError, or the signal's reason
 */
export function sendRequest (request: HttpRequest): Promise<HttpResponse> {
  return new Exchange(request).response
}

/** A response whose head has arrived. */
export class HttpResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Address without query and credentials, for messages. */
  readonly address: string
  readonly #message: IncomingMessage
  #error: Error | undefined

  constructor (message: IncomingMessage, address: string) {
    this.status = message.statusCode ?? 0
    this.headers = message.headers
    this.address = address
    this.#message = message
    message.on('error', ignore) // the reader of the body gets it; without a reader nobody wants it
  }

  /** The body as it comes. Throws when it is cut, closed with an error, or aborted; read once. */
  async * body (): AsyncGenerator<Buffer, void, undefined> {
    try {
      for await (const chunk of this.#message) yield chunk as Buffer // no encoding is set
    } catch (error) {
      throw this.#error ?? failure(this.address, error)
    }
    if (this.#error !== undefined) throw this.#error
    if (!this.#message.complete) throw new NetworkError(this.address, 'the connection was closed in the middle of the body')
  }

  /** Gives up what is still to come; the reader of the body gets the error. Harmless when all has come. */
  close (error?: Error): void {
    this.#error ??= error
    this.#message.destroy(error)
  }
}

/** A request until it has its response, and its signal until the response is over. */
class Exchange {
  readonly response: Promise<HttpResponse>
  readonly #address: string
  readonly #request: ClientRequest
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: () => void
  #timer: NodeJS.Timeout | undefined
  #open: HttpResponse | undefined
  #abortReason: Error | undefined

  constructor ({ method, url, headers, body, signal, headersTimeoutMs, agent }: HttpRequest) {
    signal?.throwIfAborted()
    this.#address = url.origin + url.pathname
    this.#signal = signal
    this.#onAbort = () => { this.#end(abortError(signal?.reason)) }
    const send = url.protocol === 'https:' ? requestHttps : requestHttp
    const request = this.#request = send(url, {
      method,
      headers: { ...headers, ...body !== undefined && { 'content-length': String(Buffer.byteLength(body)) } },
      ...agent !== undefined && { agent }
    })
    this.response = new Promise((resolve, reject) => {
      request.once('response', (message) => {
        clearTimeout(this.#timer)
        // From here on the response tells of failures.
        this.#open = new HttpResponse(message, this.#address)
        message.once('close', () => { this.#forget() })
        resolve(this.#open)
      })
      request.on('error', (error) => {
        this.#forget()
        reject(error instanceof NetTimeoutError || error === this.#abortReason ? error : failure(this.#address, error))
      })
      request.once('close', () => {
        if (this.#open !== undefined) return
        // Nobody listens for an upgrade: node closes such a connection without a word.
        this.#forget()
        reject(new NetworkError(this.#address, 'the connection was closed without an answer'))
      })
    })
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (headersTimeoutMs > 0) {
      this.#timer = setTimeout(() => {
        request.destroy(new NetTimeoutError(this.#address, 'answer', headersTimeoutMs))
      }, headersTimeoutMs).unref()
    }
    request.end(body)
  }

  #end (reason: Error): void {
    this.#abortReason = reason
    this.#open?.close(reason)
    this.#request.destroy(reason)
  }

  #forget (): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** An abort reason as something that can be thrown. */
export function abortError (reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException('This operation was aborted', 'AbortError')
}

function failure (address: string, error: unknown): Error {
  const { message, code } = error as NodeJS.ErrnoException // node emits errors only
  // An attempt on several addresses has an empty message.
  return new NetworkError(address, message || code || 'no connection', { cause: error })
}

function ignore (): void {}
