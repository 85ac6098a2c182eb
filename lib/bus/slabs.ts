import { allocate, type Bytes } from './bytes.ts'

const FIRST_SLAB = 4 * 1024
const FULL_SLAB = 64 * 1024
/** Bytes of a sealed slab that may stay unused. */
const MAX_WASTE = 512

/** One piece of a view's bytes. */
export interface Slab {
  /** Replaced when it grows or is sealed, by one that begins with the same. */
  bytes: Bytes
  /** Offset of its first byte in the stream. */
  readonly start: number
  used: number
}

/**
 * The bytes of a view, append only: a small slab that grows to 64 KB, then one after the other. Nothing written is ever
 * changed or used again, so slices stay valid in sockets after the slab was dropped here; a frame never crosses two slabs.
 */
export class Slabs {
  /** Offset behind the last byte. */
  end = 0

  #slabs: Slab[] = []
  #room = 0

  /** Appends text as UTF-8, whole frames of it; returns the bytes written. */
  append (text: string): number {
    // Three bytes a UTF-16 unit is the most that UTF-8 takes; counting exactly costs a scan, so it is done only near the end of a slab.
    const size = text.length * 3 <= this.#room ? text.length : Buffer.byteLength(text)
    const slab = this.#reserve(size)
    return this.#wrote(slab, slab.bytes.utf8Write(text, slab.used))
  }

  /** The slab that was written last. */
  get newest (): Slab | undefined {
    return this.#slabs[this.#slabs.length - 1]
  }

  /** Gives back what memory the newest slab has too much; for when nothing more is written. */
  seal (): void {
    const slab = this.newest
    if (slab === undefined || slab.bytes.length - slab.used < MAX_WASTE) return
    const bytes = allocate(slab.used)
    slab.bytes.copy(bytes, 0, 0, slab.used)
    slab.bytes = bytes
    this.#room = 0
  }

  /** Appends one frame whose payload is bytes; returns the bytes written. */
  appendBytes (head: string, data: Uint8Array, tail: string): number {
    const headSize = Buffer.byteLength(head)
    const size = headSize + data.length + Buffer.byteLength(tail)
    const slab = this.#reserve(size)
    slab.bytes.utf8Write(head, slab.used)
    slab.bytes.set(data, slab.used + headSize)
    slab.bytes.utf8Write(tail, slab.used + headSize + data.length)
    return this.#wrote(slab, size)
  }

  /** The bytes from an offset to another one, or to the end of their slab if that comes first; a view, not a copy. */
  slice (from: number, to: number): Buffer {
    let index = this.#slabs.length - 1
    while ((this.#slabs[index] as Slab).start > from) index-- // the newest slab is asked for most
    const { bytes, start, used } = this.#slabs[index] as Slab
    return bytes.subarray(from - start, Math.min(to - start, used))
  }

  /** Drops the slabs that lie wholly before an offset, except the one being written. */
  trim (offset: number): void {
    while (this.#slabs.length > 1 && (this.#slabs[1] as Slab).start <= offset) this.#slabs.shift()
  }

  /** Drops everything; the offset goes on. */
  release (): void {
    this.#slabs = []
    this.#room = 0
  }

  #wrote (slab: Slab, size: number): number {
    slab.used += size
    this.#room -= size
    this.end += size
    return size
  }

  #reserve (size: number): Slab {
    const slab = this.newest
    if (slab === undefined) return this.#open(Math.max(FIRST_SLAB, size))
    if (size <= this.#room) return slab
    const needed = slab.used + size
    return needed <= FULL_SLAB ? this.#widen(slab, needed) : this.#open(Math.max(FULL_SLAB, size))
  }

  #open (capacity: number): Slab {
    const slab = { bytes: allocate(capacity), start: this.end, used: 0 }
    this.#slabs.push(slab)
    this.#room = capacity
    return slab
  }

  /** A short log is one run of bytes, so that its replay is one write; what was handed out keeps the old memory. */
  #widen (slab: Slab, needed: number): Slab {
    let capacity = slab.bytes.length
    while (capacity < needed) capacity *= 2
    const bytes = allocate(Math.min(capacity, FULL_SLAB))
    slab.bytes.copy(bytes, 0, 0, slab.used)
    slab.bytes = bytes
    this.#room = bytes.length - slab.used
    return slab
  }
}
