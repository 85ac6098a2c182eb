import { type ServerResponse } from 'node:http'
import { type Http2ServerResponse } from 'node:http2'

/** The response below a reply, of either protocol version. */
export type RawResponse = ServerResponse | Http2ServerResponse

/** The part of a `FastifyReply` that a stream needs; any reply of Fastify 5 fits. */
export interface SseReply {
  readonly raw: RawResponse
  readonly request: { readonly method: string }
  getHeaders (): Record<string, number | string | string[] | undefined>
  hijack (): unknown
}

/** Ours win over what the reply carries: without them proxies buffer and clients refuse the stream. */
const OWN = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no'
} as const

/** Of one connection, not of the response, and forbidden under HTTP/2 (RFC 9113, 8.2.2); or of a body that has a length. */
const LEFT_OUT = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings',
  'content-length', 'content-encoding', 'etag', 'accept-ranges'
])

/**
 * Takes the response over from Fastify and sends its head at once, with everything that hooks and the handler have put
 * on the reply so far (CORS, cookies, rate limits). `onSend` hooks do not run, so nothing compresses the stream.
 */
export function sendHead (reply: SseReply): void {
  const headers = reply.getHeaders()
  reply.hijack()
  const raw = reply.raw as ServerResponse // HTTP/2's has every member used here; only its types say less
  // What is set on the response itself is in `headers` too, and would be sent beside them.
  for (const name of raw.getHeaderNames()) raw.removeHeader(name)
  // No prototype: a header may have any name.
  const sent = Object.create(null) as Record<string, number | string | string[]>
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !LEFT_OUT.has(name)) sent[name] = value
  }
  // All at once: headers that are set one by one stay with the response for as long as it streams.
  raw.writeHead(raw.statusCode, Object.assign(sent, OWN))
  raw.flushHeaders()
}
