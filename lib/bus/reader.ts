import type { Attachment, AttachmentEnd, AttachOptions, Sink } from './attachment.ts'
import type { Cursor } from './cursor.ts'
import type { Gap } from './gap.ts'
import type { ViewLog } from './view-log.ts'
import { Wrapper } from './wrap.ts'

/** What a reader tells its topic. */
export interface ReaderOwner {
  /** Nothing may be delivered now. */
  readonly isHeldBack: boolean
  /** It went on after a stall: what it held back may go, who waited for it may go on. */
  advanced (reader: ByteReader): void
  /** It was detached, by either side. */
  detached (reader: ByteReader): void
  /** It needs all of the log in its view. */
  encode (view: ViewLog): void
}

/** A sink's place in a view: live push, replay and catching up are the same act, writing the bytes from the cursor to the end. */
export class ByteReader implements Attachment {
  readonly view: ViewLog
  readonly isLossless: boolean
  isOpen = true
  /** Place in the fan-out. */
  slot = -1
  /** Last event that was handed to the sink, or was passed over. */
  seq: number

  #owner: ReaderOwner
  #sink: Sink
  #readsAhead: boolean
  #maxLagBytes: number
  #wrapper: Wrapper | undefined
  #offset: number
  #isStalled = false

  constructor (owner: ReaderOwner, view: ViewLog, options: AttachOptions, seq: number) {
    this.#owner = owner
    this.view = view
    this.seq = seq
    this.#offset = view.spans.endOf(Math.min(seq, view.encoded))
    this.#sink = options.sink
    this.isLossless = options.lossless === true
    this.#readsAhead = options.upTo === 'last'
    this.#maxLagBytes = options.maxLagBytes ?? Infinity
    this.#wrapper = options.wrap === undefined ? undefined : new Wrapper(options.wrap)
  }

  get cursor (): Cursor {
    return { epoch: this.view.log.epochAt(this.seq), seq: this.seq }
  }

  get lagBytes (): number {
    return Math.max(0, this.view.spans.endOf(this.#target) - this.#offset)
  }

  resume (): void {
    if (!this.isOpen || !this.#isStalled) return
    this.#isStalled = false
    this.#pump()
    this.#owner.advanced(this)
  }

  close (): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#owner.detached(this)
  }

  /** Detaches and tells the sink why. */
  finish (why: AttachmentEnd): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#owner.detached(this)
    this.#sink.end(why, this.cursor)
  }

  /** Writes what is new, or cuts a stalled reader that is too far behind. */
  push (): void {
    if (!this.#isStalled) this.#pump()
    else if (this.isOpen && this.lagBytes > this.#maxLagBytes) this.finish('lagged')
  }

  /** Starts with a gap. */
  start (reason: Gap['reason'] | undefined): void {
    if (reason !== undefined) this.#tellGap(reason)
    this.#pump()
  }

  /** Last event that this reader may see, of those that are framed. */
  get #target (): number {
    const { encoded, log } = this.view
    return this.#readsAhead ? encoded : Math.min(log.stored, encoded)
  }

  #pump (): void {
    if (this.#owner.isHeldBack) return
    const { view } = this
    const { log, spans } = view
    while (this.isOpen && !this.#isStalled) {
      const target = this.#target
      if (this.seq >= target) break
      if (this.seq < log.oldest - 1) {
        this.#passTrimmed()
        continue
      }
      const end = spans.endOf(target)
      if (end === this.#offset) { // the view leaves all of it out
        this.seq = target
        break
      }
      this.#write(view.slice(this.#offset, end), end, target)
    }
    if (log.ended && this.isOpen && !this.#isStalled && this.seq >= log.last) this.finish('complete')
  }

  #write (bytes: Buffer, end: number, target: number): void {
    const from = this.seq
    this.#offset += bytes.length
    this.seq = this.#offset === end ? target : this.view.spans.seqAt(this.#offset)
    const chunk = this.#wrapper === undefined ? bytes : this.#wrapper.wrap(this.view, bytes, from, this.seq)
    if (!this.#sink.write(chunk, this.view.log.ended && this.seq === this.view.log.last)) this.#isStalled = true
  }

  #passTrimmed (): void {
    if (this.view.hasLost(this.seq)) this.#tellGap('lagged')
    else this.#moveTo(this.view.log.oldest - 1)
  }

  #tellGap (reason: Gap['reason']): void {
    this.#owner.encode(this.view) // the answer may stand for what was appended in this tick
    const { oldest, last, stored } = this.view.log
    const visible = this.#readsAhead ? last : stored
    const answer = this.#sink.gap({ reason, oldest, last: visible })
    if (!this.isOpen) return
    const { text, after } = typeof answer === 'object' ? answer : { text: answer, after: oldest - 1 }
    this.#moveTo(Math.min(Math.max(after, oldest - 1), visible))
    if (text !== undefined && text !== '' && !this.#sink.write(Buffer.from(text), false)) this.#isStalled = true
  }

  #moveTo (seq: number): void {
    this.seq = seq
    this.#offset = this.view.spans.endOf(seq)
  }
}
