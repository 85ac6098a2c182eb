import type { BusEvent } from './event.ts'

const FIRST_CAPACITY = 16

/** The canonical events of one topic: a ring by sequence, nothing at all until the first append. */
export class TopicLog {
  readonly epoch: string
  /** First sequence that is kept; `last + 1` if none is. */
  oldest: number
  last: number
  /** Last sequence that the store has acknowledged (R1). */
  stored: number
  ended = false
  /** Bytes of the kept payloads, by their length as text. */
  bytes = 0
  /** Changes with everything that readers have to hear of. */
  version = 0

  #ring: (BusEvent | undefined)[] = []
  #mask = 0

  constructor (epoch: string, firstSeq: number) {
    this.epoch = epoch
    this.oldest = firstSeq
    this.last = this.stored = firstSeq - 1
  }

  get size (): number {
    return this.last - this.oldest + 1
  }

  append (event: string | undefined, data: string, level: number | undefined): number {
    const seq = this.last + 1
    if (this.last - this.oldest + 1 === this.#ring.length) this.#grow()
    this.#ring[seq & this.#mask] = { seq, event, data, level }
    this.last = seq
    this.bytes += data.length
    this.version++
    return seq
  }

  /** The event of a sequence that is kept. */
  at (seq: number): BusEvent {
    return this.#ring[seq & this.#mask] as BusEvent // callers stay within [oldest, last]
  }

  dropOldest (): void {
    const slot = this.oldest++ & this.#mask
    this.bytes -= (this.#ring[slot] as BusEvent).data.length // only called while size > 0
    this.#ring[slot] = undefined
  }

  /** Gives the ring back; it holds nothing. */
  release (): void {
    this.#ring = []
    this.#mask = 0
    this.oldest = this.last + 1
    this.bytes = 0
  }

  #grow (): void {
    const old = this.#ring
    const oldMask = this.#mask
    const capacity = old.length === 0 ? FIRST_CAPACITY : old.length * 2
    this.#ring = new Array(capacity).fill(undefined)
    this.#mask = capacity - 1
    for (let seq = this.oldest; seq <= this.last; seq++) this.#ring[seq & this.#mask] = old[seq & oldMask]
  }
}
