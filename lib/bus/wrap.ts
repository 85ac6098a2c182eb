import type { ViewLog } from './view-log.ts'

/** Puts one reader's prefix and suffix around the data of each frame (R10); a copy, made for the write and not kept. */
export class Wrapper {
  #prefix: Buffer
  #suffix: Buffer

  constructor (wrap: { readonly prefix: string, readonly suffix: string }) {
    this.#prefix = Buffer.from(wrap.prefix)
    this.#suffix = Buffer.from(wrap.suffix)
  }

  /** Wraps the frames of the events after `seq` up to `to`, which lie in `bytes` one after the other. */
  wrap ({ spans }: ViewLog, bytes: Buffer, seq: number, to: number): Buffer {
    const prefix = this.#prefix
    const suffix = this.#suffix
    const start = spans.endOf(seq)
    const wrapped = Buffer.allocUnsafeSlow(bytes.length + (to - seq) * (prefix.length + suffix.length))
    let used = 0
    let copied = 0
    for (let at = seq + 1; at <= to; at++) {
      const from = spans.endOf(at - 1) - start
      const end = spans.endOf(at) - start
      if (from === end) continue
      const data = from + spans.headOf(at)
      const tail = end - spans.tailOf(at)
      used += bytes.copy(wrapped, used, copied, data)
      used += prefix.copy(wrapped, used)
      used += bytes.copy(wrapped, used, data, tail)
      used += suffix.copy(wrapped, used)
      copied = tail
    }
    used += bytes.copy(wrapped, used, copied)
    return wrapped.subarray(0, used)
  }
}
