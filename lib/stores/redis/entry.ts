import { type LogEvent, logEvent, type LogEvents } from '../event-log.ts'

/** Beside lengths, what not every event has. */
interface Columns {
  /** Lengths of the payloads as text. */
  readonly n: readonly number[]
  readonly e?: readonly (string | null)[]
  readonly l?: readonly (number | null)[]
}

/**
 * Several events as one text: a head, which is JSON on one line, and the payloads one after the other as they are. The head is the list of
 * their lengths, or `Columns` where events have names or levels.
 */
export function encodeEntry (events: LogEvents): string {
  const lengths: number[] = []
  let names: (string | null)[] | undefined
  let levels: (number | null)[] | undefined
  let text = ''
  for (const { data, event, level } of events) {
    if (event !== undefined && names === undefined) names = lengths.map(() => null)
    if (level !== undefined && levels === undefined) levels = lengths.map(() => null)
    names?.push(event ?? null)
    levels?.push(level ?? null)
    lengths.push(data.length)
    text += data
  }
  if (names === undefined && levels === undefined) return `[${lengths.join()}]\n${text}`
  return `${JSON.stringify({ n: lengths, ...names !== undefined && { e: names }, ...levels !== undefined && { l: levels } })}\n${text}`
}

/** Adds the events of an entry with `seq > after` to a list, until that has `limit`. */
export function decodeEntry (lastSeq: number, text: string, after: number, limit: number, into: LogEvent[]): void {
  const start = text.indexOf('\n')
  const { n, e, l } = columnsOf(text.slice(0, start))
  let at = start + 1
  let seq = lastSeq - n.length + 1
  for (const [index, length] of n.entries()) {
    if (seq > after) {
      if (into.length >= limit) return
      into.push(logEvent(seq, text.slice(at, at + length), e?.[index] ?? undefined, l?.[index] ?? undefined))
    }
    at += length
    seq++
  }
}

/** How many events an entry has, by its head. */
export function countOf (head: string): number {
  return columnsOf(head).n.length
}

function columnsOf (head: string): Columns {
  const parsed = JSON.parse(head) as Columns | readonly number[] // as encoded
  return 'n' in parsed ? parsed : { n: parsed }
}
