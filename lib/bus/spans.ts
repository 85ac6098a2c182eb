const LANES = 3
const FIRST_CAPACITY = 16
const NO_LANES = new Float64Array(0)

/** Where each frame of a view lies: a ring by sequence of end offset, bytes of head, bytes of tail. */
export class Spans {
  /** First sequence held. */
  first: number
  /** One more than the last sequence held. */
  next: number
  /** End offset of the event before `first`. */
  start: number

  #lanes = NO_LANES
  #mask = -1

  constructor (first: number) {
    this.first = this.next = first
    this.start = 0
  }

  push (end: number, head: number, tail: number): void {
    if (this.next - this.first > this.#mask) this.#grow()
    const lane = (this.next++ & this.#mask) * LANES
    this.#lanes[lane] = end
    this.#lanes[lane + 1] = head
    this.#lanes[lane + 2] = tail
  }

  /** End offset of an event; `first - 1` is the start. */
  endOf (seq: number): number {
    return seq < this.first ? this.start : this.#lane(seq, 0)
  }

  headOf (seq: number): number {
    return this.#lane(seq, 1)
  }

  tailOf (seq: number): number {
    return this.#lane(seq, 2)
  }

  /** The last event that ends at or before the offset. */
  seqAt (offset: number): number {
    let low = this.first - 1
    let high = this.next - 1
    while (low < high) {
      const middle = low + Math.ceil((high - low) / 2)
      if (this.endOf(middle) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  dropFirst (): void {
    this.start = this.endOf(this.first)
    this.first++
  }

  /** Starts again, empty, at a sequence and offset; gives the ring back. */
  reset (first: number, start: number): void {
    this.first = this.next = first
    this.start = start
    this.#lanes = NO_LANES
    this.#mask = -1
  }

  #lane (seq: number, lane: number): number {
    return this.#lanes[(seq & this.#mask) * LANES + lane] as number // callers stay within [first, next)
  }

  #grow (): void {
    const old = this.#lanes
    const oldMask = this.#mask
    const capacity = oldMask === -1 ? FIRST_CAPACITY : (oldMask + 1) * 2
    const lanes = this.#lanes = new Float64Array(capacity * LANES)
    const mask = this.#mask = capacity - 1
    for (let seq = this.first; seq < this.next; seq++) {
      const from = (seq & oldMask) * LANES
      const to = (seq & mask) * LANES
      for (let lane = 0; lane < LANES; lane++) lanes[to + lane] = old[from + lane] as number // within both rings
    }
  }
}
