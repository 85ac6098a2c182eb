import type { RunKey } from './run-key.ts'
import type { RunRecord } from './run-store.ts'

/** A request for the ownership of a run. */
export interface LeaseRequest {
  readonly node: string
  /** A random text, the same for a retry of the same request: then the first answer is given again instead of `held`. */
  readonly op: string
  /** Milliseconds until others may take over, by the store's clock (R8). */
  readonly ms: number
}

/** Ownership was given. `last` is the log's newest sequence: the owner numbers on from there (R6). */
export interface Ownership {
  readonly fence: number
  readonly last: number
  readonly record: RunRecord
}

/** Why ownership was not given. `held` says for how long; 0 or less: the lease has run out and only `takeover` ends it. */
export type LeaseRefusal =
  | { readonly kind: 'held', readonly node: string, readonly fence: number, readonly expiresInMs: number }
  | { readonly kind: 'ended', readonly record: RunRecord }
  | { readonly kind: 'missing' }

export type AcquireResult = ({ readonly kind: 'acquired' } & Ownership) | LeaseRefusal

export type TakeoverResult = ({ readonly kind: 'taken' } & Ownership) | LeaseRefusal

/** `lost`: the fence is no longer the caller's, or its lease was ended; `fence` is the current one, 0 for a run that is not there. */
export type RenewResult =
  | { readonly kind: 'ok' }
  | { readonly kind: 'lost', readonly fence: number }

/** Which expired leases to list. */
export interface ExpiredQuery {
  /** Only runs of these protocols: a node reaps what it serves (R13). */
  readonly protocols: readonly string[]
  /** At most this many keys. */
  readonly limit: number
}

/**
 * Fenced ownership of runs. The first lease of a run comes with `RunStore.create`; a record written as waiting or ended loses its lease
 * in the same step. Each method is atomic on one run key, except `expired`, which reads an index and verifies each entry.
 */
export interface Leases {
  /**
   * Takes a run that has no lease (a waiting one). Raises the fence and, in the same step, seals the log: an append of any earlier
   * fence is `fenced` from then on. `held` where there is a lease, even one that has run out.
   */
  acquire (key: RunKey, request: LeaseRequest): Promise<AcquireResult>

  /**
   * As `acquire`, and also where the lease has run out by the store's clock: the one way in which an ownership ends against its
   * owner's will (R4, R8).
   */
  takeover (key: RunKey, request: LeaseRequest): Promise<TakeoverResult>

  /** Extends the lease to `ms` from now. Succeeds after it ran out as long as nobody took over (R8). Repeating it is harmless. */
  renew (key: RunKey, fence: number, ms: number): Promise<RenewResult>

  /**
   * Gives a lease up. A waiting run has no lease from then on and can be acquired; any other can be taken over at once. Nothing happens
   * where the fence is not the caller's. Repeating it is harmless.
   */
  release (key: RunKey, fence: number): Promise<void>

  /** Runs whose lease has run out, longest ago first. Index entries are verified against the run before they are returned. */
  expired (query: ExpiredQuery): Promise<readonly RunKey[]>
}
