import { MAX_EVENTS, MAX_SIZE } from './columns.ts'
import type { BusEvent, EventInit } from './event.ts'
import { EventBlock } from './event-block.ts'
import { EventList } from './event-list.ts'
import { FramedRun, type Places } from './framed-run.ts'
import type { Slab } from './slabs.ts'

/** Empty places before a list is cut: not for each of them. */
const CUT = 64

/** A life that is over. */
export interface PastLife {
  readonly epoch: string
  /** Sequence of its latest event. */
  readonly last: number
}

type Piece = EventBlock | FramedRun

const NO_LIVES: readonly PastLife[] = []

/**
 * The canonical events of one topic: where they were framed as they are, in the frames; otherwise in blocks as far as somebody has asked for blocks;
 * the newer ones one by one. Nothing at all until the first append.
 */
export class TopicLog {
  /** Of the life that goes on. */
  epoch: string
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

  /** Oldest first; mostly there are none, and all that is asked of lives is asked of the present one. */
  #past = NO_LIVES
  /** First sequence of the present life. */
  #since = 1
  #pieces: (Piece | undefined)[] = []
  /** Index of the oldest piece that is kept. */
  #head = 0
  /** The piece that was asked for last: reading goes on in it mostly. */
  #recent: Piece | undefined
  #tail = new EventList()
  /** Sequence of the first event in the tail; those before `oldest` are empty places. */
  #tailFirst: number

  constructor (epoch: string, firstSeq: number) {
    this.epoch = epoch
    this.oldest = this.#tailFirst = firstSeq
    this.last = this.stored = firstSeq - 1
  }

  get size (): number {
    return this.last - this.oldest + 1
  }

  /** Begins a life, see {@link Topic.renew}. */
  renew (epoch: string, firstSeq: number): void {
    if (this.lastOf(epoch) !== undefined) return
    // What was appended stays in its life.
    const first = this.size === 0 ? Math.min(firstSeq, this.last + 1) : this.last + 1
    if (first > this.#since) {
      this.#past = [...this.#past, { epoch: this.epoch, last: first - 1 }]
      this.#since = first
    }
    this.epoch = epoch
  }

  /** The life that a sequence belongs to, if it is over. */
  pastAt (seq: number): PastLife | undefined {
    return seq >= this.#since ? undefined : this.#past.find(({ last }) => seq <= last)
  }

  /** Epoch of the life that a sequence belongs to. */
  epochAt (seq: number): string {
    return this.pastAt(seq)?.epoch ?? this.epoch
  }

  /** Sequence of the latest event of a life; undefined for one that this topic has not had. */
  lastOf (epoch: string): number | undefined {
    return epoch === this.epoch ? this.last : this.#past.find((life) => life.epoch === epoch)?.last
  }

  /** Adds an event; returns its sequence. */
  append (data: string, options: Omit<EventInit, 'data'>): number {
    this.#tail.add(data, options)
    this.bytes += data.length
    this.version++
    return ++this.last
  }

  /** The event of a sequence that is kept. */
  at (seq: number): BusEvent {
    return seq >= this.#tailFirst ? this.#tail.at(seq - this.#tailFirst, seq) : this.#pieceOf(seq).at(seq) // callers stay within [oldest, last]
  }

  /** Length of the payload of an event that is kept. */
  sizeAt (seq: number): number {
    return seq >= this.#tailFirst ? (this.#tail.data[seq - this.#tailFirst] as string).length : this.#pieceOf(seq).sizeAt(seq)
  }

  /** The events that follow a sequence, in one piece: a block that is there, its rest, or one that is made of what is newer than every block. */
  blockAfter (seq: number): EventBlock | undefined {
    const first = Math.max(seq + 1, this.oldest)
    if (first > this.last) return undefined
    while (first >= this.#tailFirst) this.#pack()
    const piece = this.#pieceOf(first)
    if (piece instanceof FramedRun) return EventBlock.framed(piece, first)
    return first === piece.firstSeq ? piece : EventList.blockOf(this.#between(first, piece.lastSeq))
  }

  /** The payloads of so many events from a sequence on lie in a slab: those that stood alone until now need not be kept any more. */
  adopt (firstSeq: number, count: number, slab: Slab, places: Places): void {
    this.#cutTail()
    // An older view was first, or this one began later.
    if (firstSeq > this.#tailFirst) return
    for (let from = this.#tailFirst - firstSeq; from < count; from = this.#tailFirst - firstSeq) {
      const newest = this.#pieces[this.#pieces.length - 1]
      const goesOn = newest instanceof FramedRun && newest.slab === slab && newest.lastSeq + 1 === this.#tailFirst
      let added = goesOn ? newest.add(this.#tail, places, from, count) : 0
      if (added === 0) {
        const run = new FramedRun(this.#tailFirst, slab)
        this.#pieces.push(run)
        added = run.add(this.#tail, places, from, count)
      }
      this.#takeTail(added)
    }
  }

  /** Takes what lies in frames out of them, so that their memory is free: for when the view that made them goes before its events do. */
  unframe (): void {
    this.#pieces = this.#pieces.slice(this.#head).map((piece) =>
      piece instanceof FramedRun ? EventList.blockOf(this.#between(Math.max(piece.firstSeq, this.oldest), piece.lastSeq)) : piece)
    this.#head = 0
    this.#recent = undefined
  }

  dropOldest (): void {
    const seq = this.oldest
    this.bytes -= this.sizeAt(seq) // only called while size > 0
    this.oldest++
    if (seq >= this.#tailFirst) this.#dropFromTail(seq)
    else if (this.oldest > this.#pieceOf(seq).lastSeq) this.#dropPiece()
  }

  /** Gives all memory back; it holds nothing. */
  release (): void {
    this.#pieces = []
    this.#tail = new EventList()
    this.#head = this.bytes = 0
    this.#recent = undefined
    this.oldest = this.#tailFirst = this.last + 1
  }

  * #between (from: number, to: number): Generator<BusEvent, void, undefined> {
    for (let seq = from; seq <= to; seq++) yield this.at(seq)
  }

  /** Makes a block of the first events of the tail, as many as it takes and at least one. */
  #pack (): void {
    this.#cutTail()
    const { data } = this.#tail
    let count = 0
    for (let size = 0; count < data.length && count < MAX_EVENTS; count++) {
      size += (data[count] as string).length // within length
      if (count > 0 && size > MAX_SIZE) break
    }
    this.#pieces.push(EventBlock.of(this.#tailFirst, this.#takeTail(count)))
  }

  /** Takes the first events out of the tail. */
  #takeTail (count: number): EventList {
    const taken = this.#tail.take(count)
    this.#tailFirst += count
    if (this.#tail.length === 0) this.#tail = new EventList()
    return taken
  }

  #dropFromTail (seq: number): void {
    this.#tail.data[seq - this.#tailFirst] = ''
    if (this.oldest - this.#tailFirst >= CUT) this.#cutTail()
  }

  #cutTail (): void {
    if (this.oldest > this.#tailFirst) this.#takeTail(this.oldest - this.#tailFirst)
  }

  #dropPiece (): void {
    this.#pieces[this.#head++] = undefined
    this.#recent = undefined
    if (this.#head < CUT || this.#head * 2 < this.#pieces.length) return
    this.#pieces = this.#pieces.slice(this.#head)
    this.#head = 0
  }

  /** The piece that holds a sequence. */
  #pieceOf (seq: number): Piece {
    const recent = this.#recent
    if (recent !== undefined && seq >= recent.firstSeq && seq <= recent.lastSeq) return recent
    let low = this.#head
    let high = this.#pieces.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#pieces[middle] as Piece).lastSeq < seq) low = middle + 1 // from #head on there is a piece in each place
      else high = middle
    }
    const found = this.#recent = this.#pieces[low] as Piece // callers stay within what is kept
    return found
  }
}
