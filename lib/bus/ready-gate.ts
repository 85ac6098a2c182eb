import type { ByteReader } from './reader.ts'

/** How far a lossless reader may be behind before its owner waits. */
const MAX_LAG_BYTES = 64 * 1024

/** The readers that an owner waits for (R17), and the wait. */
export class ReadyGate {
  #readers: ByteReader[] = [] // one, as a rule
  #wait: Promise<void> | undefined
  #release: (() => void) | undefined

  /** Last sequence that all of them were given: what comes after must be kept. */
  get floor (): number {
    let floor = Infinity
    for (const reader of this.#readers) floor = Math.min(floor, reader.seq)
    return floor
  }

  add (reader: ByteReader): void {
    this.#readers.push(reader)
  }

  delete (reader: ByteReader): void {
    this.#readers = this.#readers.filter((other) => other !== reader)
    this.settle()
  }

  wait (): Promise<void> | undefined {
    if (!this.#isBehind()) return undefined
    this.#wait ??= new Promise((resolve) => { this.#release = resolve })
    return this.#wait
  }

  /** Lets those go on who wait, if nobody is behind any more. */
  settle (): void {
    if (this.#release === undefined || this.#isBehind()) return
    this.#release()
    this.#wait = this.#release = undefined
  }

  #isBehind (): boolean {
    for (const reader of this.#readers) if (reader.lagBytes >= MAX_LAG_BYTES) return true
    return false
  }
}
