/** Options of {@link Backoff}. */
export interface BackoffOptions {
  /** Milliseconds of the first wait. */
  readonly baseMs: number
  /** Milliseconds of the longest one. */
  readonly maxMs: number
  /** From 0 to 1, as `Math.random`, which it is by default. */
  readonly random?: () => number
}

/** How long to wait before the next attempt: twice as long each time, somewhere between half of that and all of it. */
export class Backoff {
  readonly #options: BackoffOptions
  #count = 0

  constructor (options: BackoffOptions) {
    this.#options = options
  }

  /** Attempts since the last success. */
  get count (): number {
    return this.#count
  }

  /** Milliseconds until the next attempt; at least what the other side asked for, as far as `maxMs` allows. */
  next (askedMs = 0): number {
    const { baseMs, maxMs, random = Math.random } = this.#options
    const whole = Math.min(maxMs, baseMs * 2 ** Math.min(this.#count, 30))
    this.#count++
    return Math.max(Math.round(whole * (0.5 + random() / 2)), Math.min(askedMs, maxMs))
  }

  /** An attempt has succeeded. */
  reset (): void {
    this.#count = 0
  }
}
