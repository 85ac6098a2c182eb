import { type Leases, type RunKey } from '../stores/index.ts'

/** A run's ownership by this node. */
export interface Lease {
  readonly key: RunKey
  readonly fence: number
  /** False once `leaseMs` has passed unrenewed on our own monotonic clock: tell nobody anything until renewed (R8). */
  isCurrent (now: number): boolean
  /** Renews now; false when another owner has the run. Rejects when the store is away. */
  renew (): Promise<boolean>
  /** Whether it is current now. Where it is not it is renewed, and `onRenewed` called once that has succeeded: for what had to wait. */
  assure (onRenewed: () => void): boolean
  /** Renews no longer. The lease itself ends with the record, or runs out. */
  drop (): void
}

/** What the keeper needs. */
export interface LeaseKeeperOptions {
  readonly leases: Leases
  /** Milliseconds a lease lasts; renewed every third of that. */
  readonly leaseMs: number
  /** Called at each renewal time, for what else has to be kept alive (gate tickets, presence, heartbeat). Must not throw. */
  onBeat (): void
}

/**
 * Renews the leases of all runs of an engine from one timer (R8). A renewal that fails is tried again at the next beat: only
 * a takeover ends ownership.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #held = new Set<HeldLease>()
  #timer: NodeJS.Timeout | undefined

  constructor (options: LeaseKeeperOptions) {
    this.#options = options
  }

  /** Milliseconds a lease lasts. */
  get leaseMs (): number {
    return this.#options.leaseMs
  }

  /** Keeps a lease that was just taken; `takenAt` is the monotonic clock before it was asked for. */
  hold (key: RunKey, fence: number, takenAt: number, onLost: () => void): Lease {
    const lease = new HeldLease(this.#options, key, fence, takenAt, onLost, (held) => { this.#held.delete(held) })
    this.#held.add(lease)
    return lease
  }

  /** Starts beating. */
  start (): void {
    this.#timer ??= setInterval(this.#beat, Math.max(1, Math.floor(this.#options.leaseMs / 3))).unref()
  }

  /** Renews nothing any more. */
  close (): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#held.clear()
  }

  readonly #beat = (): void => {
    for (const lease of this.#held) lease.beat()
    this.#options.onBeat()
  }
}

class HeldLease implements Lease {
  readonly key: RunKey
  readonly fence: number
  readonly #options: LeaseKeeperOptions
  readonly #onLost: () => void
  readonly #remove: (lease: HeldLease) => void
  #renewedAt: number
  #isDropped = false
  #onRenewed: (() => void) | undefined

  constructor (options: LeaseKeeperOptions, key: RunKey, fence: number, takenAt: number, onLost: () => void, remove: (lease: HeldLease) => void) {
    this.#options = options
    this.key = key
    this.fence = fence
    this.#renewedAt = takenAt
    this.#onLost = onLost
    this.#remove = remove
  }

  isCurrent (now: number): boolean {
    return now - this.#renewedAt < this.#options.leaseMs
  }

  async renew (): Promise<boolean> {
    // The time before the call: the store counts from a moment later than that.
    const askedAt = performance.now()
    const { leases, leaseMs } = this.#options
    const result = await leases.renew(this.key, this.fence, leaseMs)
    if (result.kind === 'ok') {
      this.#renewedAt = askedAt
      const onRenewed = this.#onRenewed
      this.#onRenewed = undefined
      onRenewed?.()
      return true
    }
    if (!this.#isDropped) {
      this.drop()
      this.#onLost()
    }
    return false
  }

  assure (onRenewed: () => void): boolean {
    if (this.isCurrent(performance.now())) return true
    const isAsked = this.#onRenewed !== undefined
    this.#onRenewed = onRenewed
    // One attempt, for all that ask meanwhile; where it fails the next beat is another.
    if (!isAsked) this.renew().catch(() => {})
    return false
  }

  beat (): void {
    // A failure shows in isCurrent(); the next beat tries again.
    this.renew().catch(() => {})
  }

  drop (): void {
    this.#isDropped = true
    this.#remove(this)
  }
}
