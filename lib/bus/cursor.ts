/** The last event a reader has seen. Without an epoch it fits any life of the topic. */
export interface Cursor {
  readonly epoch?: string | undefined
  readonly seq: number
}

const CURSOR = /^(?:([A-Za-z0-9_-]{1,64})\.)?(0|[1-9][0-9]{0,15})$/
const EPOCH = /^[A-Za-z0-9_-]{1,64}$/

/**
 * Reads `<epoch>.<seq>` or `<seq>`; undefined for anything else. Strict, because a cursor comes from a client: ASCII digits
 * without sign, leading zero or blanks, up to `Number.MAX_SAFE_INTEGER`.
 */
export function parseCursor (text: string): Cursor | undefined {
  const match = CURSOR.exec(text)
  if (match === null) return undefined
  const seq = Number(match[2])
  if (!Number.isSafeInteger(seq)) return undefined
  return match[1] === undefined ? { seq } : { epoch: match[1], seq }
}

/** Text of a cursor, as {@link parseCursor} reads it. */
export function formatCursor (epoch: string, seq: number): string {
  return `${epoch}.${seq}`
}

/** Whether a text can be an epoch: 1 to 64 letters, digits, `_` or `-`. */
export function isEpoch (text: string): boolean {
  return EPOCH.test(text)
}
