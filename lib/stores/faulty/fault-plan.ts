import type { OperationName } from '../operations.ts'
import { seededRandom } from './random.ts'

/** Which calls a fault is for. */
export interface FaultOptions {
  /** Calls of the operation that pass first. @default 0 */
  readonly skip?: number
  /** Calls that are hit after that. @default 1 */
  readonly times?: number
}

/** Faults at random, repeatable by their seed. Each rate is a probability from 0 to 1 a call. */
export interface RandomFaults {
  readonly seed: number
  /** Fails without effect. @default 0 */
  readonly before?: number
  /** Takes effect, then fails: the acknowledgement is lost. @default 0 */
  readonly after?: number
  /** Lets one to three turns of the event loop pass before and after. @default 0 */
  readonly slow?: number
  /** Operations that are hit. @default all but `close` */
  readonly operations?: readonly OperationName[]
}

/** A gate that calls wait at, instead of a timer. */
export interface Hold {
  /** Resolves when a call has come to the gate. */
  readonly arrived: Promise<void>
  /** Lets the calls at the gate go on, and those that would still come to it pass. */
  release (): void
}

/** What is to happen to one call, in this order: the holds before, a failure, the effect, the holds after, a failure. */
export interface FaultsOfCall {
  readonly slow: number
  readonly holdsBefore: readonly (() => Promise<void>)[]
  readonly failsBefore: boolean
  readonly holdsAfter: readonly (() => Promise<void>)[]
  readonly failsAfter: boolean
}

type Moment = 'before' | 'after'

interface Rule {
  readonly operation: OperationName | '*'
  readonly moment: Moment
  /** Absent: the call fails. */
  readonly wait?: () => Promise<void>
  skip: number
  times: number
}

/** What a faulty store does, decided by the test: by operation and count, or at random. Also counts the calls. */
export class FaultPlan {
  #rules: Rule[] = []
  #random: { readonly faults: RandomFaults, readonly draw: () => number } | undefined
  readonly #counts = new Map<OperationName, number>()
  readonly #holds = new Set<Hold>()

  constructor (random?: RandomFaults) {
    this.randomly(random)
  }

  /** The operation (`*`: any) fails and has no effect. */
  failBefore (operation: OperationName | '*', options: FaultOptions = {}): void {
    this.#rules.push({ operation, moment: 'before', skip: options.skip ?? 0, times: options.times ?? 1 })
  }

  /** The operation takes effect and fails: a lost acknowledgement. */
  failAfter (operation: OperationName | '*', options: FaultOptions = {}): void {
    this.#rules.push({ operation, moment: 'after', skip: options.skip ?? 0, times: options.times ?? 1 })
  }

  /** The operation waits until it is released: `before` its effect, or `after` it with only the answer outstanding. */
  hold (operation: OperationName | '*', options: FaultOptions & { readonly moment?: Moment } = {}): Hold {
    const arrival = deferred()
    const gate = deferred()
    const hold: Hold = {
      arrived: arrival.promise,
      release: () => {
        this.#rules = this.#rules.filter((rule) => rule.wait !== wait)
        this.#holds.delete(hold)
        gate.resolve()
      }
    }
    const wait = (): Promise<void> => {
      arrival.resolve()
      return gate.promise
    }
    this.#holds.add(hold)
    this.#rules.push({ operation, moment: options.moment ?? 'before', wait, skip: options.skip ?? 0, times: options.times ?? Infinity })
    return hold
  }

  /** Turns random faults on, replaces them, or turns them off. */
  randomly (random: RandomFaults | undefined): void {
    this.#random = random && { faults: random, draw: seededRandom(random.seed) }
  }

  /** No more faults; what is held is released. Counts stay. */
  heal (): void {
    for (const hold of this.#holds) hold.release()
    this.#rules = []
    this.randomly(undefined)
  }

  /** Calls of an operation so far, or of all. */
  count (operation?: OperationName): number {
    if (operation !== undefined) return this.#counts.get(operation) ?? 0
    let sum = 0
    for (const count of this.#counts.values()) sum += count
    return sum
  }

  /** For the store: counts the call and says what becomes of it. */
  next (operation: OperationName): FaultsOfCall {
    this.#counts.set(operation, this.count(operation) + 1)
    const hit = this.#rules.filter((rule) => isHit(rule, operation))
    const at = (moment: Moment) => hit.filter((rule) => rule.moment === moment)
    const waits = (rules: readonly Rule[]) => rules.flatMap(({ wait }) => wait ?? [])
    const fails = (rules: readonly Rule[]) => rules.some(({ wait }) => wait === undefined)
    const random = this.#randomFaults(operation)
    return {
      slow: random.slow,
      holdsBefore: waits(at('before')),
      failsBefore: random.before || fails(at('before')),
      holdsAfter: waits(at('after')),
      failsAfter: random.after || fails(at('after'))
    }
  }

  #randomFaults (operation: OperationName): { readonly slow: number, readonly before: boolean, readonly after: boolean } {
    const none = { slow: 0, before: false, after: false }
    if (this.#random === undefined) return none
    const { draw, faults: { before = 0, after = 0, slow = 0, operations } } = this.#random
    const isMeant = operations === undefined ? operation !== 'close' : operations.includes(operation)
    if (!isMeant) return none
    const turns = 1 + Math.floor(draw() * 3)
    return { slow: draw() < slow ? turns : 0, before: draw() < before, after: draw() < after }
  }
}

/** Counts a rule down; true where the call is one it means. */
function isHit (rule: Rule, operation: OperationName): boolean {
  if (rule.operation !== '*' && rule.operation !== operation) return false
  if (rule.skip > 0) {
    rule.skip--
    return false
  }
  if (rule.times === 0) return false
  rule.times--
  return true
}

function deferred (): { readonly promise: Promise<void>, resolve (): void } {
  const settled: (() => void)[] = []
  const promise = new Promise<void>((resolve) => { settled.push(resolve) })
  return { promise, resolve: () => { for (const settle of settled) settle() } }
}
