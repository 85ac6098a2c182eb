/** Something that a {@link Wheel} visits. One entry stands in one wheel at a time. */
export class WheelEntry {
  /** Called when the entry is due; gives the ticks to the next visit, 0 for none. */
  readonly visit: (now: number) => number
  /** Index of the slot the entry stands in; -1 for none. Kept by the wheel. */
  slot = -1
  /** Tick of the next visit. Kept by the wheel. */
  due = 0

  constructor (visit: (now: number) => number) {
    this.visit = visit
  }
}

const SLOTS = 64

/**
 * One interval for any number of deadlines, so that ten thousand idle streams cost one timer. A slot is visited every 64
 * ticks at the latest; what is not due yet then goes on to a later slot. The timer runs only while there are entries and
 * never keeps the process alive. A tick is time in which the event loop turned: a process that was stopped for a minute
 * does not wake up to find every peer overdue.
 */
export class Wheel {
  /** Ticks so far. */
  now = 0
  readonly #tickMs: number
  readonly #slots: Set<WheelEntry>[] = Array.from({ length: SLOTS }, () => new Set())
  #size = 0
  #timer: NodeJS.Timeout | undefined

  constructor (tickMs: number) {
    this.#tickMs = tickMs
  }

  /** Number of entries. */
  get size (): number {
    return this.#size
  }

  /** Whole ticks in a duration, at least one. */
  ticks (ms: number): number {
    return Math.max(1, Math.ceil(ms / this.#tickMs))
  }

  /** Visits the entry in that many ticks, and no longer when it was due before. */
  schedule (entry: WheelEntry, ticks: number): void {
    if (entry.slot === -1) this.#size++
    else this.#slotOf(entry).delete(entry)
    entry.due = this.now + ticks
    entry.slot = (this.now + Math.min(ticks, SLOTS)) % SLOTS
    this.#slotOf(entry).add(entry)
    this.#timer ??= setInterval(() => this.#tick(), this.#tickMs).unref()
  }

  /** Forgets the entry; the last one to go stops the timer. */
  remove (entry: WheelEntry): void {
    if (entry.slot === -1) return
    this.#slotOf(entry).delete(entry)
    entry.slot = -1
    this.#size--
    if (this.#size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #slotOf (entry: WheelEntry): Set<WheelEntry> {
    return this.#slots[entry.slot] as Set<WheelEntry> // an entry in the wheel has a slot below SLOTS
  }

  #tick (): void {
    this.now++
    const index = this.now % SLOTS
    // A copy, because a visit may close other streams: what has left this slot by its turn is passed over.
    for (const entry of [...this.#slots[index] as Set<WheelEntry>]) { // index is below SLOTS
      if (entry.slot !== index) continue
      const ticks = entry.due > this.now ? entry.due - this.now : entry.visit(this.now)
      if (ticks > 0) this.schedule(entry, ticks)
      else this.remove(entry)
    }
  }
}
