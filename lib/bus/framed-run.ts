import { EventBlock } from './event-block.ts'
import type { BusEvent } from './event.ts'
import type { EventList } from './event-list.ts'
import type { Slab } from './slabs.ts'

/** Events, and bytes of payload, that a run takes. */
const MAX_EVENTS = 256
const MAX_SIZE = 32 * 1024
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
export class FramedRun {
  readonly firstSeq: number
  readonly slab: Slab
  length = 0
  /** Bytes of all payloads, which is their length as text. */
  size = 0
  areLines = true
  names: (string | undefined)[] | undefined
  levels: (number | undefined)[] | undefined
  #starts = new Uint32Array(FIRST_CAPACITY)
  #ends = new Uint32Array(FIRST_CAPACITY)

  constructor (firstSeq: number, slab: Slab) {
    this.firstSeq = firstSeq
    this.slab = slab
  }

  get lastSeq (): number {
    return this.firstSeq + this.length - 1
  }

  /** Takes events from the place `from` on, as many as fit; the list begins with that at `skipped`. Returns how many. */
  take (list: EventList, { offset, starts, ends }: Places, { from, to, skipped }: { readonly from: number, readonly to: number, readonly skipped: number }): number {
    const count = to - from
    let taken = 0
    while (taken < count) {
      const index = this.length
      const start = starts[from + taken] as number // within count
      const end = ends[from + taken] as number
      if (index > 0 && (index === MAX_EVENTS || this.size + end - start > MAX_SIZE)) break
      if (index === this.#starts.length) this.#grow()
      this.#starts[index] = offset + start
      this.#ends[index] = offset + end
      this.size += end - start
      const name = list.names?.[from + taken - skipped]
      const level = list.levels?.[from + taken - skipped]
      if (name !== undefined || this.names !== undefined) (this.names ??= nothing(index)).push(name)
      if (level !== undefined || this.levels !== undefined) (this.levels ??= nothing(index)).push(level)
      this.length++
      taken++
    }
    if (taken > 0 && !list.areLines) this.areLines = false
    return taken
  }

  at (seq: number): BusEvent {
    const index = seq - this.firstSeq
    return { seq, event: this.names?.[index], data: this.textAt(index), level: this.levels?.[index], isLine: this.areLines || undefined }
  }

  textAt (index: number): string {
    return this.slab.bytes.latin1Slice(this.#starts[index] as number, this.#ends[index] as number) // the caller stays within
  }

  sizeAt (seq: number): number {
    const index = seq - this.firstSeq
    return (this.#ends[index] as number) - (this.#starts[index] as number) // the caller stays within
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

  /** The events from a sequence on, as they are now. */
  block (firstSeq: number): EventBlock {
    return EventBlock.framed(this, firstSeq)
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

function nothing (count: number): undefined[] {
  return Array.from({ length: count }, () => undefined)
}
