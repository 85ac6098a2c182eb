import type { LogEvent, LogLimits, LogPage } from '../event-log.ts'

/** What an event costs beside its payload: the object, its slot, its name. */
const EVENT_BYTES = 64

interface Entry {
  readonly firstSeq: number
  readonly lastSeq: number
  readonly events: readonly LogEvent[]
  readonly bytes: number
}

/** The log of one run: appends as they came, trimmed from the old end. Events are kept by reference. */
export class RunLog {
  #entries: Entry[] = []
  /** Index of the oldest entry kept; what is before it is cut off now and then, not each time. */
  #head = 0
  #last = 0
  #bytes = 0

  get last (): number { return this.#last }
  get bytes (): number { return this.#bytes }
  get oldest (): number { return this.#entries[this.#head]?.firstSeq ?? this.#last + 1 }

  /** Adds events that follow `last`. */
  append (events: readonly LogEvent[]): void {
    let bytes = 0
    for (const event of events) bytes += event.data.length + EVENT_BYTES
    const firstSeq = this.#last + 1
    this.#last += events.length
    this.#bytes += bytes
    // The caller may reuse its array, so that the array is copied, never the events.
    this.#entries.push({ firstSeq, lastSeq: this.#last, events: events.slice(), bytes })
  }

  /** Drops old appends until the limits hold; `hardBytes` holds whatever the floor. The newest append always stays. */
  trim (limits: LogLimits | undefined, hardBytes: number): void {
    const { maxEvents = Infinity, maxBytes = Infinity, floor = Infinity } = limits ?? {}
    for (;;) {
      const entry = this.#entries[this.#head]
      if (entry === undefined || entry.lastSeq === this.#last) break
      const over = this.#last - entry.lastSeq >= maxEvents || this.#bytes > maxBytes
      if (!(over && entry.lastSeq <= floor) && this.#bytes <= hardBytes) break
      this.#bytes -= entry.bytes
      this.#head++
    }
    if (this.#head > 32 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
  }

  read (after: number, limit: number): LogPage {
    const events: LogEvent[] = []
    for (let index = this.#find(after + 1); events.length < limit; index++) {
      const entry = this.#entries[index]
      if (entry === undefined) break
      const from = Math.max(0, after + 1 - entry.firstSeq)
      const to = Math.min(entry.events.length, from + limit - events.length)
      for (let i = from; i < to; i++) events.push(entry.events[i] as LogEvent) // i is within the array
    }
    return { oldest: this.oldest, last: this.#last, events }
  }

  /** Index of the first kept entry that ends at or after `seq`. */
  #find (seq: number): number {
    let low = this.#head
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#entries[middle] as Entry // low <= middle < high
      if (entry.lastSeq < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
