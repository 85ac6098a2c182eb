import type { Slabs } from './slabs.ts'
import type { Spans } from './spans.ts'
import type { TopicLog } from './topic-log.ts'

/** Characters, and frames, that are written together. Larger batches would leave more of each slab empty. */
const BATCH_SIZE = 8 * 1024
const BATCH_FRAMES = 256

/** Where the frames of a batch end, and where their heads end and tails begin; used within one call only. */
const ends = new Uint32Array(BATCH_FRAMES)
const heads = new Uint32Array(BATCH_FRAMES)
const tails = new Uint32Array(BATCH_FRAMES)

/**
 * Frames on their way into slabs. They are joined as text and written in one go: a write of its own for each of many short
 * frames costs more than everything else that is done for them. Use it within one tick, and flush it.
 */
export class FrameBatch {
  readonly #slabs: Slabs
  readonly #spans: Spans
  readonly #log: TopicLog
  #text = ''
  #areAsTheyAre = true
  #count = 0

  /** @param log told where payloads lie that stand in their frames as they are */
  constructor (slabs: Slabs, spans: Spans, log: TopicLog) {
    this.#slabs = slabs
    this.#spans = spans
    this.#log = log
  }

  /** `isAsItIs`: the data is the event's own payload. */
  add (head: string, data: string, tail: string, isAsItIs: boolean): void {
    const start = this.#text.length
    const size = head.length + data.length + tail.length
    // Before, so that one large frame has its slab to itself and does not take small ones along.
    if (start > 0 && start + size > BATCH_SIZE) {
      this.flush()
      this.add(head, data, tail, isAsItIs)
      return
    }
    const at = this.#count++
    if (!isAsItIs) this.#areAsTheyAre = false
    this.#text += head + data + tail
    heads[at] = start + head.length
    tails[at] = start + size - tail.length
    ends[at] = start + size
    if (this.#count === BATCH_FRAMES) this.flush()
  }

  flush (): void {
    const text = this.#text
    const count = this.#count
    if (count === 0) return
    const start = this.#slabs.end
    const firstSeq = this.#spans.next
    const isAscii = this.#slabs.append(text) === text.length
    const slab = this.#slabs.newest
    const areAsTheyAre = this.#areAsTheyAre
    this.#text = ''
    this.#count = 0
    this.#areAsTheyAre = true
    if (isAscii) this.#pushAscii(start, count)
    else this.#push(text, start, count)
    if (isAscii && areAsTheyAre && slab !== undefined) this.#log.adopt(firstSeq, count, slab, { offset: start - slab.start, starts: heads, ends: tails })
  }

  #pushAscii (start: number, count: number): void {
    let from = 0
    for (let at = 0; at < count; at++) {
      const end = ends[at] as number // all within `count`
      this.#spans.push(start + end, (heads[at] as number) - from, end - (tails[at] as number))
      from = end
    }
  }

  #push (text: string, start: number, count: number): void {
    let from = 0
    let offset = start
    for (let at = 0; at < count; at++) {
      const end = ends[at] as number // all within `count`
      const head = Buffer.byteLength(text.slice(from, heads[at]))
      const tail = Buffer.byteLength(text.slice(tails[at], end))
      offset += head + Buffer.byteLength(text.slice(heads[at], tails[at])) + tail
      this.#spans.push(offset, head, tail)
      from = end
    }
  }
}
