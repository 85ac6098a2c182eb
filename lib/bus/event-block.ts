import type { BusEvent } from './event.ts'
import type { EventList } from './event-list.ts'

/** Events from which one run of bytes is cheaper to keep than as many strings. */
const MIN_PACKED = 8

/** Bytes that an event costs beside its payload. */
const LOOSE_OVERHEAD = 64
const PACKED_OVERHEAD = 8

/**
 * Events of one log that follow each other, kept in one piece and never changed. Many of them are one run of UTF-8 outside of
 * the heap: what is kept for long then costs its payload and a few bytes, and the garbage collector nothing. A log hands the
 * same block to its store, so that both keep it once.
 */
export class EventBlock implements Iterable<BusEvent> {
  /** Sequence of the first event. */
  readonly firstSeq: number
  /** Number of events, 1 or more. */
  readonly length: number
  /** Payloads by their length as text. */
  readonly size: number

  readonly #names: readonly (string | undefined)[] | undefined
  readonly #levels: readonly (number | undefined)[] | undefined
  readonly #areLines: boolean | undefined
  readonly #payloads: Loose | Packed

  /** Made of at least one event; what the list holds is this block's from then on. */
  constructor (firstSeq: number, { data, names, levels, areLines }: EventList) {
    this.firstSeq = firstSeq
    this.length = data.length
    this.#names = names
    this.#levels = levels
    this.#areLines = areLines || undefined
    this.#payloads = data.length < MIN_PACKED ? new Loose(data) : new Packed(data)
    this.size = this.#payloads.size
  }

  /** Sequence of the last event. */
  get lastSeq (): number {
    return this.firstSeq + this.length - 1
  }

  /** Rough bytes that keeping it costs. */
  get bytes (): number {
    return this.size + this.length * this.#payloads.overhead
  }

  /** The event of a sequence within the block. */
  at (seq: number): BusEvent {
    const index = seq - this.firstSeq
    return { seq, event: this.#names?.[index], data: this.#payloads.at(index), level: this.#levels?.[index], isLine: this.#areLines }
  }

  /** The block by its columns, for who stores it as bytes. Not to be changed. */
  get columns (): EventColumns {
    return { ...this.#payloads.utf8, names: this.#names, levels: this.#levels }
  }

  /** Length of one event's payload as text. */
  sizeAt (seq: number): number {
    return this.#payloads.sizeAt(seq - this.firstSeq)
  }

  * [Symbol.iterator] (): Generator<BusEvent, void, undefined> {
    for (let seq = this.firstSeq; seq <= this.lastSeq; seq++) yield this.at(seq)
  }
}

/** Events that follow each other, one column a member. */
export interface EventColumns extends Utf8 {
  /** Names, as many as payloads; absent where no event has one. */
  readonly names: readonly (string | undefined)[] | undefined
  readonly levels: readonly (number | undefined)[] | undefined
}

/** Payloads as UTF-8 in one piece. */
interface Utf8 {
  readonly bytes: Buffer
  /** At which byte each payload ends. */
  readonly ends: Uint32Array
}

/** A few payloads, as they came. */
class Loose {
  readonly overhead = LOOSE_OVERHEAD
  readonly size: number
  readonly #data: readonly string[]

  constructor (data: readonly string[]) {
    this.#data = data
    this.size = data.reduce((size, text) => size + text.length, 0)
  }

  get utf8 (): Utf8 {
    return { bytes: Buffer.from(this.#data.join('')), ends: byteEnds(this.#data) }
  }

  at (index: number): string {
    return this.#data[index] as string // the caller stays within the block
  }

  sizeAt (index: number): number {
    return this.at(index).length
  }
}

/** Many payloads as UTF-8 in one piece. Their lengths as text are kept only where they differ. */
class Packed {
  readonly overhead = PACKED_OVERHEAD
  readonly size: number
  readonly #bytes: Bytes
  readonly #ends: Uint32Array
  readonly #textEnds: Uint32Array

  constructor (data: readonly string[]) {
    const textEnds = this.#textEnds = new Uint32Array(data.length)
    let text = ''
    for (let index = 0; index < data.length; index++) {
      text += data[index]
      textEnds[index] = text.length
    }
    this.size = text.length
    const bytes = this.#bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text)) as Bytes // see Bytes
    bytes.utf8Write(text, 0)
    this.#ends = bytes.length === text.length ? textEnds : byteEnds(data)
  }

  get utf8 (): Utf8 {
    return { bytes: this.#bytes, ends: this.#ends }
  }

  at (index: number): string {
    const start = startOf(this.#ends, index)
    const end = this.#ends[index] as number // the caller stays within the block
    return this.#ends === this.#textEnds ? this.#bytes.latin1Slice(start, end) : this.#bytes.utf8Slice(start, end)
  }

  sizeAt (index: number): number {
    return (this.#textEnds[index] as number) - startOf(this.#textEnds, index) // the caller stays within the block
  }
}

/** What Node's own streams use: `write()` and `toString()` without the checks of their arguments, which are right here. */
type Bytes = Buffer & {
  utf8Write (text: string, offset: number): number
  utf8Slice (start: number, end: number): string
  latin1Slice (start: number, end: number): string
}

function byteEnds (data: readonly string[]): Uint32Array {
  let end = 0
  return Uint32Array.from(data, (text) => (end += Buffer.byteLength(text)))
}

function startOf (ends: Uint32Array, index: number): number {
  return index === 0 ? 0 : ends[index - 1] as number // within the block
}
