const RETRY_MIN_MS = 500
const RETRY_MAX_MS = 5_000

/** Milliseconds for the `retry` of clients that are sent away: another number each time, so that they do not all come back at once. */
export function spreadRetry (): number {
  return RETRY_MIN_MS + Math.floor(Math.random() * (RETRY_MAX_MS - RETRY_MIN_MS))
}
