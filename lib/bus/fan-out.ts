import type { ByteReader } from './reader.ts'
import type { Slice } from './flusher.ts'
import type { TopicLog } from './topic-log.ts'

/** The readers of one view, and the pass that gives each of them what is new; a pass may be cut into slices. */
export class FanOut {
  /** Every reader that does not stall has been given all up to here. */
  served = 0

  #readers: ByteReader[] = []
  /** Readers removed during a pass; they keep their place until it is over. */
  #removed = 0
  #next = 0
  #passing = false
  #version = -1
  #serving = 0

  /** Whether there is somebody to serve, or a pass to finish. */
  get isActive (): boolean {
    return this.#readers.length > 0
  }

  /** Adds a reader that has everything up to the log's end, or is given it at once. */
  add (reader: ByteReader, log: TopicLog): void {
    if (this.#readers.length === 0) {
      this.#version = log.version
      this.served = log.stored
    }
    reader.slot = this.#readers.push(reader) - 1
  }

  remove (reader: ByteReader): void {
    if (this.#passing) {
      this.#removed++
      return
    }
    const last = this.#readers.pop()
    if (last === undefined || last === reader) return
    last.slot = reader.slot
    this.#readers[reader.slot] = last
  }

  /** Gives each reader what is new. False: time is up, or more came meanwhile; call again. */
  run (log: TopicLog, slice: Slice): boolean {
    if (!this.#passing) {
      if (this.#version === log.version) return true
      this.#passing = true
      this.#version = log.version
      this.#serving = log.stored
    }
    const readers = this.#readers
    while (this.#next < readers.length) {
      const reader = readers[this.#next++] as ByteReader // within length
      reader.push()
      if (slice.isOver() && this.#next < readers.length) return false
    }
    this.#finish()
    return this.#version === log.version
  }

  /** The readers that are open, as they are now. */
  open (): readonly ByteReader[] {
    return this.#readers.filter((reader) => reader.isOpen)
  }

  #finish (): void {
    this.#passing = false
    this.#next = 0
    this.served = this.#serving
    if (this.#removed === 0) return
    this.#removed = 0
    this.#readers = this.#readers.filter((reader) => reader.isOpen)
    this.#readers.forEach((reader, slot) => { reader.slot = slot })
  }
}
