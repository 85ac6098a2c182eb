import { GrowingColumns, MAX_EVENTS, MAX_SIZE } from './columns.ts'
import type { BusEvent } from './event.ts'
import type { EventList } from './event-list.ts'
import type { Slab } from './slabs.ts'

const FIRST_CAPACITY = 8
const GROWTH = 4

/** Where payloads lie in a slab, one after the other. */
export interface Places {
  /** Index in the slab's bytes that the others count from. */
  readonly offset: number
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/**
 * Events of one log that follow each other and whose payloads lie in the frames that a view has made of them: what was framed is kept once,
 * outside of the heap. It grows at its end; what is in it never changes. All of it is ASCII.
 */
export class FramedRun extends GrowingColumns {
  readonly firstSeq: number
  readonly slab: Slab
  /** Bytes of all payloads, which is their length as text. */
  #size = 0
  #starts = new Uint32Array(FIRST_CAPACITY)
  #ends = new Uint32Array(FIRST_CAPACITY)

  constructor (firstSeq: number, slab: Slab) {
    super()
    this.firstSeq = firstSeq
    this.slab = slab
  }

  get lastSeq (): number {
    return this.firstSeq + this.length - 1
  }

  /** Adds the first events of a list, as many as fit of those whose places are `[from, to)`; returns how many. */
  add (list: EventList, { offset, starts, ends }: Places, from: number, to: number): number {
    for (let place = from; place < to; place++) {
      const start = starts[place] as number // within both
      const end = ends[place] as number
      const index = this.length
      if (index > 0 && (index === MAX_EVENTS || this.#size + end - start > MAX_SIZE)) return place - from
      if (index === this.#starts.length) this.#grow()
      this.#starts[index] = offset + start
      this.#ends[index] = offset + end
      this.#size += end - start
      this.note(list.names?.[place - from], list.levels?.[place - from], list.areLines)
    }
    return to - from
  }

  at (seq: number): BusEvent {
    const index = seq - this.firstSeq
    return { seq, event: this.names?.[index], data: this.textAt(index), level: this.levels?.[index], isLine: this.areLines || undefined }
  }

  textAt (index: number): string {
    return this.slab.bytes.latin1Slice(this.#starts[index] as number, this.#ends[index] as number) // the caller stays within
  }

  sizeAt (seq: number): number {
    return this.sizeOf(seq - this.firstSeq, 1)
  }

  /** Bytes of the payloads of `count` events from an index on. */
  sizeOf (from: number, count: number): number {
    let size = 0
    for (let index = from; index < from + count; index++) size += (this.#ends[index] as number) - (this.#starts[index] as number) // within
    return size
  }

  /** Copies the payloads of `count` events from an index on into one piece; tells where each ends. */
  gather (from: number, count: number, into: Buffer, ends: Uint32Array): void {
    const { bytes } = this.slab
    let at = 0
    for (let index = from; index < from + count; index++) {
      at += bytes.copy(into, at, this.#starts[index], this.#ends[index])
      ends[index - from] = at
    }
  }

  #grow (): void {
    const capacity = this.#starts.length * GROWTH
    const [starts, ends] = [new Uint32Array(capacity), new Uint32Array(capacity)]
    starts.set(this.#starts)
    ends.set(this.#ends)
    this.#starts = starts
    this.#ends = ends
  }
}
