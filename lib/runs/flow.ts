import { type Burst } from './burst.ts'
import { insist } from './insist.ts'
import { type Lease } from './lease.ts'
import { type RunLog } from './run-log.ts'

/** Events that one agent may yield before others have their turn. */
const MAX_BURST_EVENTS = 256
/** Events, and characters of payload, that pass between two looks at everything while an agent yields fast. */
const UNSEEN_EVENTS = 8
const UNSEEN_SIZE = 4 * 1024

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
  /** More is held back than a barrier takes. */
  onFull (): void
}

/** Decides, event by event, whether an execution may tell something and whether its agent has to wait. */
export class FlowControl {
  readonly #options: FlowControlOptions
  #count = 0
  /** Events that may still pass unseen, in which stretch of work, up to which size of the log. */
  #unseen = 0
  #stretch = 0
  #maxSize = 0
  #isCallerGone = false
  #isEnding = false
  #due: (() => Promise<unknown>) | undefined

  constructor (options: FlowControlOptions) {
    this.#options = options
  }

  /** Before an event: nothing is told under a lease that may have run out (R8). */
  guard (): Promise<void> | undefined {
    if (this.#isUnseen) return undefined
    const { burst, lease, log } = this.#options
    const now = burst.clock()
    log.tick(now)
    return lease.isCurrent(now) ? undefined : this.#insist(() => lease.renew())
  }

  /** After an event, and again after each wait: what the agent has to wait for next. */
  blocked (): Promise<void> | undefined {
    if (this.#isUnseen) {
      this.#unseen--
      this.#count++
      return undefined
    }
    if (this.#due !== undefined) {
      const work = this.#due
      this.#due = undefined
      return this.#insist(work)
    }
    const { burst, log, onFull } = this.#options
    if (log.isFull) onFull()
    const now = burst.clock()
    // isOver() first: it notes that this stretch works.
    if (burst.isOver(now) || ++this.#count >= MAX_BURST_EVENTS) {
      this.#count = 0
      return burst.nextTurn()
    }
    const ready = this.#isCallerGone ? undefined : log.topic.ready()
    const wait = ready === undefined ? log.storeReady(now) : this.#awaitCaller(ready)
    if (wait === undefined && burst.isBrisk && this.#count < MAX_BURST_EVENTS - UNSEEN_EVENTS) this.#closeEyes()
    return wait
  }

  /** Something that has to be stored before the next event (R21). */
  after (work: () => Promise<unknown>): void {
    // While ending, a result is one that the normaliser made up.
    if (this.#isEnding) return
    this.#unseen = 0
    const earlier = this.#due
    this.#due = earlier === undefined ? work : async () => { await earlier(); await work() }
  }

  /** A caller is there (again). */
  callerCame (): void {
    this.#isCallerGone = false
  }

  /** The agent has ended: what comes now is made up for it. */
  end (): void {
    this.#isEnding = true
  }

  /** The event loop has not had its turn since the last look, and little has come. */
  get #isUnseen (): boolean {
    const { burst, log } = this.#options
    return this.#unseen > 0 && this.#stretch === burst.stretch && log.size < this.#maxSize
  }

  #closeEyes (): void {
    const { burst, log } = this.#options
    this.#unseen = UNSEEN_EVENTS
    this.#stretch = burst.stretch
    this.#maxSize = log.size + UNSEEN_SIZE
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
