import type { EventBlock } from '../../bus/index.ts'
import { type LogEvent, logEvent } from '../event-log.ts'

/** Bytes before the ends of the payloads: whether there are names or levels, and the number of events. */
const HEAD = 5

/** A block as it is stored: its payloads as they are, so that nothing is parsed or escaped. */
export function encodeBlock (block: EventBlock): Buffer {
  const { bytes, ends, names, levels } = block.columns
  const extras = names === undefined && levels === undefined ? '' : JSON.stringify({ names, levels })
  const payloads = HEAD + 4 * ends.length
  const value = Buffer.allocUnsafeSlow(payloads + bytes.length + Buffer.byteLength(extras))
  let at = value.writeUInt8(extras === '' ? 0 : 1)
  at = value.writeUInt32LE(ends.length, at)
  for (const end of ends) at = value.writeUInt32LE(end, at)
  at += bytes.copy(value, at)
  value.write(extras, at)
  return value
}

/** The events of a stored block from `from` to `to`, both within it. */
export function decodeBlock (value: Buffer, firstSeq: number, from: number, to: number): readonly LogEvent[] {
  const count = value.readUInt32LE(1)
  const payloads = HEAD + 4 * count
  const endOf = (index: number): number => index < 0 ? 0 : value.readUInt32LE(HEAD + 4 * index)
  const { names, levels } = value.readUInt8() === 0 ? NONE : JSON.parse(value.toString('utf8', payloads + endOf(count - 1))) as Extras // written above
  const events: LogEvent[] = []
  for (let seq = from; seq <= to; seq++) {
    const index = seq - firstSeq
    const data = value.toString('utf8', payloads + endOf(index - 1), payloads + endOf(index))
    events.push(logEvent(seq, data, names?.[index] ?? undefined, levels?.[index] ?? undefined))
  }
  return events
}

/** JSON has null for what is absent in a list. */
interface Extras {
  readonly names?: readonly (string | null)[]
  readonly levels?: readonly (number | null)[]
}

const NONE: Extras = {}
