import { allocate, type Bytes } from './bytes.ts'
import type { Columns } from './columns.ts'
import type { BusEvent } from './event.ts'
import type { EventList } from './event-list.ts'
import type { FramedRun } from './framed-run.ts'

/** Events from which one run of bytes is cheaper to keep than as many strings. */
const MIN_PACKED = 8

/** Bytes that an event costs beside its payload. */
const LOOSE_OVERHEAD = 64
const PACKED_OVERHEAD = 8
const FRAMED_OVERHEAD = 40

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
  readonly #payloads: Payloads

  private constructor (firstSeq: number, length: number, payloads: Payloads, { names, levels, areLines }: Columns) {
    this.firstSeq = firstSeq
    this.length = length
    this.#names = names
    this.#levels = levels
    this.#areLines = areLines || undefined
    this.#payloads = payloads
    this.size = payloads.size
  }

  /** Made of at least one event; what the list holds is this block's from then on. */
  static of (firstSeq: number, list: EventList): EventBlock {
    const { data } = list
    return new EventBlock(firstSeq, data.length, data.length < MIN_PACKED ? new Loose(data) : new Packed(data), list)
  }

  /** The events of a run from a sequence on, as many as it has now and at least one. */
  static framed (run: FramedRun, firstSeq: number): EventBlock {
    const from = firstSeq - run.firstSeq
    const count = run.length - from
    return new EventBlock(firstSeq, count, new Framed(run, from, count), run.part(from, count))
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
export interface EventColumns extends Utf8, Omit<Columns, 'areLines'> {}

/** What the payloads of a block lie in. */
interface Payloads {
  /** Bytes that an event costs beside its payload. */
  readonly overhead: number
  readonly size: number
  readonly utf8: Utf8
  at (index: number): string
  sizeAt (index: number): number
}

/** Payloads as UTF-8 in one piece. */
interface Utf8 {
  readonly bytes: Buffer
  /** At which byte each payload ends. */
  readonly ends: Uint32Array
}

/** A few payloads, as they came. */
class Loose implements Payloads {
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
class Packed implements Payloads {
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
    const bytes = this.#bytes = allocate(Buffer.byteLength(text))
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

/** Payloads that lie in frames. */
class Framed implements Payloads {
  readonly overhead = FRAMED_OVERHEAD
  readonly size: number
  readonly #run: FramedRun
  readonly #from: number
  readonly #count: number

  constructor (run: FramedRun, from: number, count: number) {
    this.#run = run
    this.#from = from
    this.#count = count
    this.size = run.sizeOf(from, count)
  }

  get utf8 (): Utf8 {
    const bytes = Buffer.allocUnsafe(this.size)
    const ends = new Uint32Array(this.#count)
    this.#run.gather(this.#from, this.#count, bytes, ends)
    return { bytes, ends }
  }

  at (index: number): string {
    return this.#run.textAt(this.#from + index)
  }

  sizeAt (index: number): number {
    return this.#run.sizeOf(this.#from + index, 1)
  }
}

function byteEnds (data: readonly string[]): Uint32Array {
  let end = 0
  return Uint32Array.from(data, (text) => (end += Buffer.byteLength(text)))
}

function startOf (ends: Uint32Array, index: number): number {
  return index === 0 ? 0 : ends[index - 1] as number // within the block
}
