/** Longest stretch of work, in milliseconds, before the event loop gets its turn. */
const MAX_BURST_MS = 5

/**
 * Shares this process between agents that never wait. One per engine: a stretch of work lasts 5 ms and belongs to all of
 * them; whoever gives way queues up and is woken when those before it have had their turn, one after the other. So each
 * agent's events come in runs that are written and stored together, and not one by one in turns with all the others'.
 */
export class Burst {
  readonly #waiting: (() => void)[] = []
  #startedAt = 0
  #isArmed = false
  #isWaking = false

  /** Call for each piece of work, with the monotonic clock; true when it is time to give way. */
  isOver (now: number): boolean {
    if (this.#isArmed) return now - this.#startedAt >= MAX_BURST_MS
    this.#arm(now)
    return false
  }

  /** Gives way: resolves when those who wait already have had their turn, in this stretch of work or the next. */
  nextTurn (): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (!this.#isArmed) this.#arm(performance.now())
      if (!this.#isWaking) this.#wakeLater()
    })
  }

  #arm (now: number): void {
    this.#isArmed = true
    this.#startedAt = now
    setImmediate(this.#reset)
  }

  readonly #reset = (): void => {
    this.#isArmed = false
    if (!this.#isWaking) this.#wake()
  }

  readonly #wake = (): void => {
    this.#isWaking = false
    if (this.#waiting.length === 0) return
    // Over time: the next stretch begins with #reset.
    if (this.#isArmed && performance.now() - this.#startedAt >= MAX_BURST_MS) return
    this.#waiting.shift()?.()
    this.#wakeLater()
  }

  /** After whoever was woken has done what it can without waiting: ticks come when the microtasks are through. */
  #wakeLater (): void {
    this.#isWaking = true
    queueMicrotask(this.#tick)
  }

  readonly #tick = (): void => {
    process.nextTick(this.#wake)
  }
}
