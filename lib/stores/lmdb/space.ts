import { StoreFullError } from '../errors.ts'
import type { Eraser } from './eraser.ts'
import type { Usage } from './usage.ts'

/** Ended runs dropped by one operation that needs room: enough for a large event, and no long stop. */
const MAX_DROPS = 32

/** The limit on what is kept, and what happens when it is reached. */
export class Space {
  readonly #usage: Usage
  readonly #eraser: Eraser
  readonly #maxBytes: number

  constructor (usage: Usage, eraser: Eraser, maxBytes: number) {
    this.#usage = usage
    this.#eraser = eraser
    this.#maxBytes = maxBytes
  }

  /** Sees to it that so many bytes may be added, before anything is. @throws AGT_ERR_STORE_FULL */
  need (bytes: number): void {
    for (let drops = 0; this.#usage.bytes + bytes > this.#maxBytes; drops++) {
      if (drops === MAX_DROPS || !this.#eraser.eraseOldestEnded()) throw new StoreFullError('maxBytes', this.#maxBytes)
    }
  }
}
