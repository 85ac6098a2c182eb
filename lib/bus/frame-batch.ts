import type { Slabs } from './slabs.ts'
import type { Spans } from './spans.ts'

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
  #text = ''
  #count = 0

  constructor (slabs: Slabs, spans: Spans) {
    this.#slabs = slabs
    this.#spans = spans
  }

  add (head: string, data: string, tail: string): void {
    const start = this.#text.length
    const size = head.length + data.length + tail.length
    // Before, so that one large frame has its slab to itself and does not take small ones along.
    if (start > 0 && start + size > BATCH_SIZE) {
      this.flush()
      this.add(head, data, tail)
      return
    }
    const at = this.#count++
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
    const isAscii = this.#slabs.append(text) === text.length
    this.#text = ''
    this.#count = 0
    if (isAscii) this.#pushAscii(start, count)
    else this.#push(text, start, count)
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
