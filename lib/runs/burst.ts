import { timestamp } from '../agent/index.ts'

/** Longest stretch of work, in milliseconds, before the event loop gets its turn. */
const MAX_BURST_MS = 5
/** Time between two readings of the clock, in milliseconds, below which work comes briskly. */
const BRIEF_MS = 0.25

/**
 * Shares this process between agents that never wait. One per engine: a stretch of work lasts 5 ms and belongs to all of
 * them; whoever gives way queues up and is woken when those before it have had their turn, one after the other. So each
 * agent's events come in runs that are written and stored together, and not one by one in turns with all the others'.
 */
export class Burst {
  readonly #waiting: (() => void)[] = []
  #startedAt = 0
  #now = 0
  #stretch = 0
  #isBrisk = false
  #isArmed = false
  #isWaking = false
  #stampedAt = 0
  #stamp = ''

  /** Number of the stretch of work: changes whenever the event loop had its turn. */
  get stretch (): number {
    return this.#stretch
  }

  /** Whether pieces of work follow each other so fast that not each of them needs a look at the clock. */
  get isBrisk (): boolean {
    return this.#isBrisk
  }

  /** The monotonic clock. Reading it costs as much as a small event. */
  clock (): number {
    const now = performance.now()
    this.#isBrisk = this.#isArmed && now - this.#now < BRIEF_MS
    this.#now = now
    return now
  }

  /** The time of day in ISO 8601; within a stretch of work as of the last reading of the clock. An arrow: it is handed to whoever stamps events. */
  readonly timestamp = (): string => {
    if (!this.#isArmed) return timestamp()
    if (this.#stampedAt !== this.#now || this.#stamp === '') {
      this.#stampedAt = this.#now
      this.#stamp = timestamp()
    }
    return this.#stamp
  }

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
    this.#stretch++
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
