import { type Burst } from './burst.ts'
import { insist } from './insist.ts'
import { type Lease } from './lease.ts'
import { type RunLog } from './run-log.ts'

/** Events that one agent may yield before others have their turn. */
const MAX_BURST_EVENTS = 256

/** What flow control works with. */
export interface FlowControlOptions {
  readonly burst: Burst
  readonly lease: Lease
  readonly log: RunLog
  /** Milliseconds the agent waits for its caller (R17). */
  readonly writeTimeoutMs: number
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  /** The caller took nothing for `writeTimeoutMs`: it counts as gone. */
  onCallerStalled (): void
  /** What had to be stored before going on could not be (R9). */
  onUnavailable (): void
}

/** Decides, event by event, whether an execution may tell something and whether its agent has to wait. */
export class FlowControl {
  readonly #options: FlowControlOptions
  #count = 0
  #isCallerGone = false
  #due: (() => Promise<unknown>) | undefined

  constructor (options: FlowControlOptions) {
    this.#options = options
  }

  /** Before an event: nothing is told under a lease that may have run out (R8). */
  guard (): Promise<void> | undefined {
    const { burst, lease, log } = this.#options
    const now = burst.clock()
    log.tick(now)
    return lease.isCurrent(now) ? undefined : this.#insist(() => lease.renew())
  }

  /** After an event, and again after each wait: what the agent has to wait for next. */
  blocked (): Promise<void> | undefined {
    if (this.#due !== undefined) {
      const work = this.#due
      this.#due = undefined
      return this.#insist(work)
    }
    const { burst, log } = this.#options
    const now = burst.clock()
    // isOver() first: it notes that this stretch works.
    if (burst.isOver(now) || ++this.#count >= MAX_BURST_EVENTS) {
      this.#count = 0
      return burst.nextTurn()
    }
    const ready = this.#isCallerGone ? undefined : log.topic.ready()
    return ready === undefined ? log.storeReady(now) : this.#awaitCaller(ready)
  }

  /** Something that has to be stored before the next event (R21). */
  after (work: () => Promise<unknown>): void {
    const earlier = this.#due
    this.#due = earlier === undefined ? work : async () => { await earlier(); await work() }
  }

  /** A caller is there (again). */
  callerCame (): void {
    this.#isCallerGone = false
  }

  #awaitCaller (ready: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#isCallerGone = true
        this.#options.onCallerStalled()
        resolve()
      }, this.#options.writeTimeoutMs).unref()
      ready.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Tries for as long as R9 allows. */
  async #insist (work: () => Promise<unknown>): Promise<void> {
    try {
      await insist(work, this.#options.patienceMs)
    } catch {
      // What failed is the store's to log; what follows is told by the run's end.
      this.#options.onUnavailable()
    }
  }
}
