/** One event of every workload: about 120 bytes as a frame, shaped like a text delta, since that is what agents mostly send. */
export interface Payload {
  readonly type: 'TEXT_MESSAGE_CONTENT'
  readonly messageId: string
  readonly delta: string
}

/** The byte the load counts events by; nothing else a server writes contains it. */
export const MARK = '~'

/** Digits that follow the mark: microseconds of the machine's monotonic clock, or zeros. */
export const STAMP_DIGITS = 15

/** Stands where no latency is measured. */
export const UNSTAMPED = '0'.repeat(STAMP_DIGITS)

const MESSAGE_ID = 'msg-0001'
const TEXT = ' and so the answer goes on.'
const DELTA = MARK + UNSTAMPED + TEXT

/** Now, as the digits a payload carries. The monotonic clock is the same in all processes of a machine. */
export function stampNow (): string {
  return String(process.hrtime.bigint() / 1000n).padStart(STAMP_DIGITS, '0')
}

/** The text of a delta. Unstamped it is one flat string, as a token from a model is. */
export function deltaOf (stamp: string): string {
  return stamp === UNSTAMPED ? DELTA : MARK + stamp + TEXT
}

/** A fresh event object, as an agent would make one. */
export function payloadOf (stamp: string): Payload {
  return { type: 'TEXT_MESSAGE_CONTENT', messageId: MESSAGE_ID, delta: deltaOf(stamp) }
}

/** The frame that `raw-limit` writes: encoded ahead of time, so that the anchor pays for its write alone. */
export function frameOf (stamp: string): Buffer {
  return Buffer.from(`data: ${JSON.stringify(payloadOf(stamp))}\n\n`, 'latin1')
}
