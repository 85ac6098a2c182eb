/** How many events without a number are remembered by their id. */
const REMEMBERED = 4_096

/** What is to be done with an event. */
export type Verdict = 'new' | 'duplicate' | 'hole'

/** The events that were taken, so that none is taken twice and none is missed unseen. */
export class Sequence {
  #last: number
  /** A hole that a second look has not filled. */
  #hole: number | undefined
  readonly #ids = new Set<string>()
  #hasMoved = false

  constructor (last: number) {
    this.#last = last
  }

  /** Number of the newest event that was taken; 0 before the first. */
  get last (): number {
    return this.#last
  }

  /**
   * Judges an event by its number, or by its id where it has none, and takes a new one. A `hole` is one ahead of what is missing,
   * and is not taken: what is missing may come with the next connection.
   */
  take (seq: number | undefined, id: string | undefined): Verdict {
    const isNumbered = seq !== undefined && seq > 0
    if (isNumbered) {
      if (seq <= this.#last) return 'duplicate'
      if (seq > this.#last + 1 && this.#hole !== seq) {
        this.#hole = seq
        return 'hole'
      }
      this.#last = seq
      this.#hole = undefined
    }
    // Agents may use an id twice: it counts only where numbers do not.
    if (id !== undefined && (!isNumbered || this.#hasMoved) && this.#ids.has(id)) return 'duplicate'
    if (id !== undefined) this.#remember(id)
    return 'new'
  }

  /** Events that are missing before this one, which was seen as a hole before. */
  missingBefore (seq: number | undefined): number {
    return seq !== undefined && seq === this.#hole ? seq - this.#last - 1 : 0
  }

  /** The service goes on behind this number, whatever was taken so far. */
  moveTo (last: number): void {
    this.#last = last
    this.#hole = undefined
    this.#hasMoved = true
  }

  #remember (id: string): void {
    this.#ids.add(id)
    if (this.#ids.size <= REMEMBERED) return
    const [oldest] = this.#ids
    if (oldest !== undefined) this.#ids.delete(oldest)
  }
}
