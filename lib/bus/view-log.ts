import { FanOut } from './fan-out.ts'
import { FrameBatch } from './frame-batch.ts'
import { Slabs } from './slabs.ts'
import { Spans } from './spans.ts'
import type { TopicLog } from './topic-log.ts'
import type { View } from './view.ts'

const NO_BYTES = Buffer.alloc(0)

/** One view of a topic as bytes: each event is framed once, when somebody is there to read it. */
export class ViewLog {
  readonly view: View
  readonly log: TopicLog
  readonly readers = new FanOut()
  readonly spans: Spans

  /** Last event of this view that is gone; a cursor from here on has missed nothing. */
  #gone: number
  #prevSeq: number
  #slabs = new Slabs()
  #position: { epoch: string, prevSeq: number }

  // The slice that was asked for last: in a fan-out every reader asks for the same one.
  #from = -1
  #to = -1
  #slice: Buffer = NO_BYTES

  constructor (view: View, log: TopicLog) {
    this.view = view
    this.log = log
    this.spans = new Spans(log.oldest)
    this.#gone = this.#prevSeq = log.oldest - 1
    this.#position = { epoch: log.epoch, prevSeq: 0 }
  }

  /** Last event that is framed. */
  get encoded (): number {
    return this.spans.next - 1
  }

  /** Bytes of the frames that are kept. */
  get bytes (): number {
    return this.#slabs.end - this.spans.start
  }

  /** Whether somebody whose last event is `seq` has lost an event of this view. */
  hasLost (seq: number): boolean {
    return seq < this.#gone
  }

  /** Frames what came since; returns the bytes that were added. */
  encode (): number {
    const { log, spans, view } = this
    const slabs = this.#slabs
    const position = this.#position
    if (spans.next < log.oldest) this.#restart()
    const start = slabs.end
    const batch = new FrameBatch(slabs, spans, log)
    let seq = spans.next
    while (seq <= log.last) { // once a life, so mostly once
      const { epoch, last } = log.pastAt(seq) ?? log
      position.epoch = epoch
      for (; seq <= last; seq++) {
        position.prevSeq = this.#prevSeq
        const event = log.at(seq)
        const frame = view.frame(event, position)
        if (frame !== undefined && typeof frame.data === 'string') batch.add(frame.head, frame.data, frame.tail, frame.data === event.data)
        else {
          batch.flush()
          if (frame === undefined) spans.push(slabs.end, 0, 0)
          else this.#encodeBytes(frame.head, frame.data as Uint8Array, frame.tail) // the other kind of data
        }
        if (frame !== undefined) this.#prevSeq = seq
      }
    }
    batch.flush()
    return slabs.end - start
  }

  /** Gives back what memory is not used: nothing follows, but somebody may keep what is there. */
  seal (): void {
    this.#slabs.seal()
  }

  #encodeBytes (head: string, data: Uint8Array, tail: string): void {
    const size = this.#slabs.appendBytes(head, data, tail)
    const headSize = Buffer.byteLength(head)
    this.spans.push(this.#slabs.end, headSize, size - headSize - data.length)
  }

  /** Bytes from an offset towards another one, at most to the end of a slab. */
  slice (from: number, to: number): Buffer {
    if (from !== this.#from || to !== this.#to) {
      this.#slice = this.#slabs.slice(from, to)
      this.#from = from
      this.#to = to
    }
    return this.#slice
  }

  /** Bytes of one event's frame; 0 where it is not framed or not in the view. */
  sizeOf (seq: number): number {
    return seq < this.spans.first || seq >= this.spans.next ? 0 : this.spans.endOf(seq) - this.spans.endOf(seq - 1)
  }

  /** Follows the log, which has dropped everything before its `oldest`; returns the bytes that went. */
  trim (): number {
    const { spans, log } = this
    const start = spans.start
    while (spans.first < log.oldest && spans.first < spans.next) {
      const before = spans.start
      const seq = spans.first
      spans.dropFirst()
      if (spans.start > before) this.#gone = seq
    }
    if (spans.first === spans.next) this.#slabs.release()
    else this.#slabs.trim(spans.start)
    if (this.#from < spans.start && this.#from !== -1) this.#forgetSlice()
    return spans.start - start
  }

  /** Gives all memory back; what is still kept in the log is framed again when somebody reads it. */
  release (): void {
    this.spans.reset(this.log.oldest, this.#slabs.end)
    this.#slabs.release()
    this.#prevSeq = this.#gone
    this.#forgetSlice()
  }

  /** Events went by unframed, so nobody knows which of them were in this view: all count as lost. */
  #restart (): void {
    this.#gone = this.log.oldest - 1
    this.release()
  }

  #forgetSlice (): void {
    this.#from = this.#to = -1
    this.#slice = NO_BYTES
  }
}
