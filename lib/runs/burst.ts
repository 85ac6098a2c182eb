/** Longest stretch of work, in milliseconds, before the event loop gets its turn. */
const MAX_BURST_MS = 5

/**
 * Tells how long this process has been working without returning to its event loop. One per engine: fifty agents that
 * never wait share one stretch, and each of them gives way when it is over. Costs one immediate per loop turn, not per event.
 */
export class Burst {
  #turn = 0
  #startedAt = 0
  #isArmed = false
  #next: Promise<void> | undefined
  #wake: (() => void) | undefined

  /** Counts the turns of the event loop that did any work. */
  get turn (): number {
    return this.#turn
  }

  /** Call for each piece of work, with the monotonic clock; true when it is time to give way. */
  isOver (now: number): boolean {
    if (!this.#isArmed) {
      this.#isArmed = true
      this.#startedAt = now
      setImmediate(this.#reset)
      return false
    }
    return now - this.#startedAt >= MAX_BURST_MS
  }

  /** Resolves in the next turn of the event loop, for everybody who waits. */
  nextTurn (): Promise<void> {
    this.#next ??= new Promise((resolve) => { this.#wake = resolve })
    return this.#next
  }

  readonly #reset = (): void => {
    this.#turn++
    this.#isArmed = false
    const wake = this.#wake
    this.#next = undefined
    this.#wake = undefined
    wake?.()
  }
}
