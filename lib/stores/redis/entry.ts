import { EventList } from '../../bus/index.ts'
import { type LogEvent, logEvent, type LogEvents } from '../event-log.ts'

/** Beside lengths, what not every event has. */
interface Columns {
  /** Lengths of the payloads as text. */
  readonly n: readonly number[]
  readonly e?: readonly (string | null)[]
  readonly l?: readonly (number | null)[]
}

/** Payloads up to which one text costs less than pieces. */
const SHORT = 1_024

/**
 * Several events as one text: a head, which is JSON on one line, and the payloads one after the other as they are. The head is the list of
 * their lengths, or `Columns` where events have names or levels.
 */
export function encodeEntry (events: LogEvents): string | Buffer {
  const block = EventList.blockOf(events)
  const { bytes, names, levels } = block.columns
  const lengths: number[] = []
  for (let seq = block.firstSeq; seq <= block.lastSeq; seq++) lengths.push(block.sizeAt(seq))
  const isPlain = names === undefined && levels === undefined
  const head = isPlain ? `[${lengths.join()}]\n` : `${JSON.stringify({ n: lengths, e: names?.map(orNull), l: levels?.map(orNull) })}\n`
  return bytes.length <= SHORT ? head + bytes.toString() : Buffer.concat([Buffer.from(head), bytes])
}

function orNull<T> (value: T | undefined): T | null {
  return value ?? null
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
