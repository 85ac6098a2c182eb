import createError from '@fastify/error'

/** No answer came: refused, reset, no such host, cut in the middle. The cause says which. */
export const NetworkError = createError<[string, string, { cause: unknown }?]>('AGT_ERR_NET_FAILED', 'The request to %s failed: %s.', 502)

/** The other side took too long. */
export const NetTimeoutError = createError<[string, string, number]>('AGT_ERR_NET_TIMEOUT', '%s gave no %s within %d ms.', 504)

/** A body or an event is larger than its limit; trying again gives the same. */
export const NetTooLargeError = createError<[string, string, number]>('AGT_ERR_NET_TOO_LARGE', '%s sent %s of more than %d bytes.', 502)

/** A body that should be JSON is not. */
export const NetNotJsonError = createError<[string, number, { cause: unknown }?]>('AGT_ERR_NET_NOT_JSON', '%s answered %d with a body that is not JSON.', 502)

const CODES: ReadonlySet<unknown> = new Set(['AGT_ERR_NET_FAILED', 'AGT_ERR_NET_TIMEOUT', 'AGT_ERR_NET_NOT_JSON'])

/** Whether a failure may be gone the next time: the network, a time limit, a proxy's page in place of an answer. */
export function isTransient (error: unknown): boolean {
  return error instanceof Error && 'code' in error && CODES.has(error.code)
}
