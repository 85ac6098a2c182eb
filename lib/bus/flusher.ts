/** Deliveries between two looks at the clock. */
const STRIDE = 64

/** The time that one turn of fan-out may take. */
export class Slice {
  #deadline: number
  #count = 0

  constructor (ms: number) {
    this.#deadline = performance.now() + ms
  }

  /** Counts one delivery; true when the time is up. */
  isOver (): boolean {
    return (++this.#count % STRIDE) === 0 && performance.now() >= this.#deadline
  }
}

/** A topic with something to deliver. */
export interface Flushable {
  /** Waits in a {@link Flusher}; kept by the flusher. */
  isQueued: boolean
  /** False: the slice is over and there is more to do. */
  flush (slice: Slice): boolean
}

/** Delivers what the topics of a bus have gathered: on the next tick, then slice by slice with the event loop between. */
export class Flusher {
  #sliceMs: number
  #queue: Flushable[] = []
  #isScheduled = false

  constructor (sliceMs: number) {
    this.#sliceMs = sliceMs
  }

  schedule (topic: Flushable): void {
    if (topic.isQueued) return
    topic.isQueued = true
    this.#queue.push(topic)
    if (this.#isScheduled) return
    this.#isScheduled = true
    process.nextTick(this.#run)
  }

  /** A slice of full length, for a delivery outside the queue. */
  slice (): Slice {
    return new Slice(this.#sliceMs)
  }

  #run = (): void => {
    const due = this.#queue
    const slice = this.slice()
    this.#queue = []
    for (const topic of due) {
      topic.isQueued = false
      if (!topic.flush(slice)) this.#again(topic)
    }
    this.#isScheduled = this.#queue.length > 0
    if (this.#isScheduled) setImmediate(this.#run)
  }

  #again (topic: Flushable): void {
    if (topic.isQueued) return
    topic.isQueued = true
    this.#queue.push(topic)
  }
}
