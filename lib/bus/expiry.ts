/** The one timer of a topic's age: fires when its time is over, and does not keep the process alive. */
export class Expiry {
  #ttlMs: number
  #onExpire: () => void
  #timer: NodeJS.Timeout | undefined
  #isFresh = false

  constructor (ttlMs: number, onExpire: () => void) {
    this.#ttlMs = ttlMs
    this.#onExpire = onExpire
  }

  /**
   * Counts from now on, at least: this is called for every event, so a running timer is not set back but given a second
   * round when it fires. What is kept for `ttlMs` goes within twice that.
   */
  extend (): void {
    this.#isFresh = true
    if (this.#timer === undefined) this.start()
  }

  /** Counts exactly from now on. */
  start (): void {
    clearTimeout(this.#timer)
    this.#isFresh = false
    this.#timer = setTimeout(this.#fire, this.#ttlMs).unref()
  }

  stop (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #fire = (): void => {
    this.#timer = undefined
    if (this.#isFresh) this.start()
    else this.#onExpire()
  }
}
