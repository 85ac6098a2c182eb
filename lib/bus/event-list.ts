import { GrowingColumns } from './columns.ts'
import type { BusEvent, EventInit } from './event.ts'
import { EventBlock } from './event-block.ts'

/** Events of a log that follow each other, one column a member and no object an event: most have a payload and nothing else. */
export class EventList extends GrowingColumns {
  data: string[] = []

  /** A block of events given one by one, at least one; their sequences are dense. Where they are a block already, that one. */
  static blockOf (events: Iterable<BusEvent>): EventBlock {
    if (events instanceof EventBlock) return events
    const list = new EventList()
    let firstSeq = 0
    for (const event of events) {
      if (list.length === 0) firstSeq = event.seq
      list.add(event.data, event)
    }
    return EventBlock.of(firstSeq, list)
  }

  add (data: string, { event, level, isLine }: Omit<EventInit, 'data'>): void {
    this.note(event, level, isLine === true)
    this.data.push(data)
  }

  /** The event at an index, which is that of the sequence. */
  at (index: number, seq: number): BusEvent {
    return { seq, event: this.names?.[index], data: this.data[index] as string, level: this.levels?.[index], isLine: this.areLines || undefined } // the caller stays within
  }

  /** Takes the first `count` events out, as a list of their own. */
  take (count: number): EventList {
    const taken = new EventList()
    taken.data = this.data.splice(0, count)
    taken.names = this.names?.splice(0, count)
    taken.levels = this.levels?.splice(0, count)
    taken.areLines = this.areLines
    taken.length = count
    this.length -= count
    return taken
  }
}
