import createError from '@fastify/error'

/** A frame's field holds a character that would end its line, so that the rest could be read as a field of its own. */
export const SseFieldError = createError<[string, string]>('AGT_ERR_SSE_FIELD', 'The "%s" of an SSE frame %s.', 500)

/** The hub is closing; the client may come back, to this node or another. */
export const SseClosingError = createError('AGT_ERR_SSE_CLOSING', 'This server is closing and opens no further streams; reconnect.', 503)

/** A response follows one topic, from `follow()` to its end. */
export const SseFollowError = createError('AGT_ERR_SSE_FOLLOWING', 'This response follows a topic already.', 500)

/** How a stream came to its end. */
export type SseEnd =
  /** `end()` was called and the last byte has left. */
  | 'ended'
  /** The client went away. */
  | 'disconnected'
  /** The client took nothing for `writeTimeoutMs`, or `streamTimeoutMs` is over. */
  | 'timeout'
  /** The hub was closed, as a server does while it shuts down. */
  | 'closed'

const WHY = {
  ended: 'The stream has ended.',
  disconnected: 'The client has disconnected.',
  timeout: 'The stream has run out of time.',
  closed: 'The server is closing.'
} as const

/** What {@link SseResponse.signal} fires with: an `AbortError` that tells how the stream ended. */
export class SseEndedError extends Error {
  override readonly name = 'AbortError'
  readonly code = 'AGT_ERR_SSE_ENDED'
  readonly end: SseEnd

  constructor (end: SseEnd) {
    super(WHY[end])
    this.end = end
  }
}
