import type { LogLimits } from '../event-log.ts'

/** Where a log and its current ownership stand. */
export interface LogEdge {
  readonly last: number
  /** Where the current ownership began to number. */
  readonly ownFirst: number
}

/** Whether events continue the log, are all in it since this fence began (a retry, R5), or neither. */
export function placeOf ({ last, ownFirst }: LogEdge, firstSeq: number, count: number): 'next' | 'there' | 'elsewhere' {
  if (count === 0) return 'there'
  if (firstSeq === last + 1) return 'next'
  return firstSeq >= ownFirst && firstSeq + count - 1 <= last ? 'there' : 'elsewhere'
}

/** Whether the oldest append of a log, which ends at `lastSeq`, is to go. The newest append always stays; `hardBytes` holds whatever the floor. */
export function isTrimmed (lastSeq: number, log: { readonly last: number, readonly bytes: number }, limits: LogLimits | undefined, hardBytes: number): boolean {
  const { maxEvents = Infinity, maxBytes = Infinity, floor = Infinity } = limits ?? {}
  if (lastSeq >= log.last) return false
  if (log.bytes > hardBytes) return true
  return lastSeq <= floor && (log.last - lastSeq >= maxEvents || log.bytes > maxBytes)
}
