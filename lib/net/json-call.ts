import { type IncomingHttpHeaders } from 'node:http'
import { NetNotJsonError, NetTimeoutError, NetTooLargeError } from './errors.ts'
import { abortError, type HttpRequest, type HttpResponse, sendRequest } from './http-request.ts'

/** A call whose answer is read whole, as JSON. */
export interface JsonCall extends Omit<HttpRequest, 'body' | 'headersTimeoutMs'> {
  /** Sent as JSON; absent: no body. */
  readonly body?: unknown
  /** Milliseconds from the first byte sent to the last one read. */
  readonly timeoutMs: number
  /** Size of the answer at which it is given up. */
  readonly maxBytes: number
}

/** The whole answer. */
export interface JsonAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Undefined for an empty body, and for anything but JSON beside an error status. */
  readonly body: unknown
}

/**
 * Calls and reads the answer; any status is an answer.
 *
 * @throws NetworkError, NetTimeoutError, NetTooLargeError, NetNotJsonError for a good status without JSON, or the signal's reason
 */
export async function callJson ({ body, timeoutMs, maxBytes, signal, headers, ...request }: JsonCall): Promise<JsonAnswer> {
  signal?.throwIfAborted()
  const deadline = new AbortController()
  const onAbort = (): void => { deadline.abort(abortError(signal?.reason)) }
  signal?.addEventListener('abort', onAbort, { once: true })
  const address = request.url.origin + request.url.pathname
  const timer = setTimeout(() => { deadline.abort(new NetTimeoutError(address, 'complete answer', timeoutMs)) }, timeoutMs).unref()
  try {
    const response = await sendRequest({
      ...request,
      headers: { accept: 'application/json', ...body !== undefined && { 'content-type': 'application/json' }, ...headers },
      ...body !== undefined && { body: JSON.stringify(body) },
      headersTimeoutMs: 0, // the deadline covers it
      signal: deadline.signal
    })
    const text = await readText(response, maxBytes)
    return { status: response.status, headers: response.headers, body: parse(response, text) }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function readText (response: HttpResponse, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response.body()) {
    size += chunk.length
    if (size > maxBytes) {
      response.close()
      throw new NetTooLargeError(response.address, 'a body', maxBytes)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse ({ status, address }: HttpResponse, text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    if (status >= 200 && status < 300) throw new NetNotJsonError(address, status, { cause: error })
    return undefined // a proxy's page: the status says it all
  }
}
