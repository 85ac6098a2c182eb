import { type EventBlock, EventList } from '../../bus/index.ts'
import { isTrimmed } from '../rules/log.ts'
import { type LogEvent, logEvent, type LogEvents, type LogLimits, type LogPage } from '../event-log.ts'

/** The log of one run: appends as they came, trimmed from the old end. Blocks are kept as they are, shared with whoever made them. */
export class RunLog {
  #blocks: EventBlock[] = []
  /** Index of the oldest block kept; what is before it is cut off now and then, not each time. */
  #head = 0
  #last = 0
  #bytes = 0

  get last (): number { return this.#last }
  get bytes (): number { return this.#bytes }
  get oldest (): number { return this.#blocks[this.#head]?.firstSeq ?? this.#last + 1 }

  /** Adds events that follow `last`. */
  append (events: LogEvents): void {
    if (events.length === 0) return
    const block = EventList.blockOf(events)
    this.#blocks.push(block)
    this.#last = block.lastSeq
    this.#bytes += block.bytes
  }

  /** Drops old appends until the limits hold; `hardBytes` holds whatever the floor. The newest append always stays. */
  trim (limits: LogLimits | undefined, hardBytes: number): void {
    for (;;) {
      const block = this.#blocks[this.#head]
      if (block === undefined || !isTrimmed(block.lastSeq, this, limits, hardBytes)) break
      this.#bytes -= block.bytes
      this.#head++
    }
    if (this.#head > 32 && this.#head * 2 > this.#blocks.length) {
      this.#blocks = this.#blocks.slice(this.#head)
      this.#head = 0
    }
  }

  read (after: number, limit: number): LogPage {
    const events: LogEvent[] = []
    for (let index = this.#find(after + 1); events.length < limit; index++) {
      const block = this.#blocks[index]
      if (block === undefined) break
      const from = Math.max(block.firstSeq, after + 1)
      const to = Math.min(block.lastSeq, from + limit - events.length - 1)
      for (let seq = from; seq <= to; seq++) {
        const { data, event, level } = block.at(seq)
        events.push(logEvent(seq, data, event, level))
      }
    }
    return { oldest: this.oldest, last: this.#last, events }
  }

  /** Index of the first kept block that ends at or after `seq`. */
  #find (seq: number): number {
    let low = this.#head
    let high = this.#blocks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const block = this.#blocks[middle] as EventBlock // low <= middle < high
      if (block.lastSeq < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
