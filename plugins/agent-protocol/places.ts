/** A place to execute a task in, or in the queue for one. */
export interface Place {
  /** Resolves when the execution may begin; rejects with the signal's reason if that fires first. */
  ready (signal: AbortSignal): Promise<void>
  /** Leaves; again is harmless. */
  leave (): void
  /** Whether it still waits for others to leave. */
  readonly isQueued: boolean
}

/** Bounds how many tasks a process executes at once, and how many wait for that. First come, first served. */
export class Places {
  readonly #max: number
  readonly #maxQueue: number
  readonly #queue = new Set<QueuedPlace>()
  #taken = 0

  constructor (maxConcurrent: number, maxQueue: number) {
    this.#max = maxConcurrent
    this.#maxQueue = maxQueue
  }

  /** Takes a place; undefined when even the queue is full. Leave it on every path. */
  enter (): Place | undefined {
    const isFree = this.#taken < this.#max
    if (!isFree && this.#queue.size >= this.#maxQueue) return undefined
    const place = new QueuedPlace((left) => { this.#leave(left) })
    if (isFree) this.#seat(place)
    else this.#queue.add(place)
    return place
  }

  #seat (place: QueuedPlace): void {
    this.#taken++
    place.seat()
  }

  #leave (place: QueuedPlace): void {
    if (this.#queue.delete(place)) return
    this.#taken--
    const [next] = this.#queue
    if (next === undefined) return
    this.#queue.delete(next)
    this.#seat(next)
  }
}

class QueuedPlace implements Place {
  readonly #onLeave: (place: QueuedPlace) => void
  #isSeated = false
  #hasLeft = false
  #wake: (() => void) | undefined

  constructor (onLeave: (place: QueuedPlace) => void) {
    this.#onLeave = onLeave
  }

  get isQueued (): boolean {
    return !this.#isSeated && !this.#hasLeft
  }

  seat (): void {
    this.#isSeated = true
    this.#wake?.()
  }

  async ready (signal: AbortSignal): Promise<void> {
    if (this.#isSeated) return
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => { reject(signal.reason) }
      this.#wake = () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  leave (): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.#onLeave(this)
  }
}
