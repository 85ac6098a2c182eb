import type { LeaseRefusal, LeaseRequest } from '../leases.ts'
import { isEnded, type RunRecord } from '../run-store.ts'

/** A lease as held. `released`: given up, so that its owner can not prolong it any more. */
export interface HeldLease {
  readonly node: string
  readonly op: string
  readonly expiresAt: number
  readonly released: boolean
}

/** What a request for a run's ownership meets: a refusal, its own lease (a retry), or nothing, so that the fence is raised. */
export type TakeDecision =
  | { readonly kind: 'refused', readonly refusal: LeaseRefusal }
  | { readonly kind: 'again' }
  | { readonly kind: 'raise' }

/** A lease just given. */
export function newLease ({ node, op, ms }: LeaseRequest, now: number): HeldLease {
  return { node, op, expiresAt: now + ms, released: false }
}

/** How `acquire`, or `takeover` with `fromExpired`, is answered. */
export function decideTake (record: RunRecord, lease: HeldLease | undefined, { op }: LeaseRequest, fromExpired: boolean, now: number): TakeDecision {
  if (isEnded(record.state)) return { kind: 'refused', refusal: { kind: 'ended', record } }
  if (lease === undefined) return { kind: 'raise' }
  if (lease.op === op) return { kind: 'again' }
  const expiresInMs = lease.expiresAt - now
  if (fromExpired && expiresInMs <= 0) return { kind: 'raise' }
  return { kind: 'refused', refusal: { kind: 'held', node: lease.node, fence: record.fence, expiresInMs } }
}

/** Whether the lease is still that of the fence's owner, who may prolong it. */
export function isRenewable (record: Pick<RunRecord, 'fence'>, lease: HeldLease | undefined, fence: number): lease is HeldLease {
  return record.fence === fence && lease !== undefined && !lease.released
}

/** What is left of a lease that its owner gives up: nothing where the run waits. */
export function releasedLease (record: Pick<RunRecord, 'state'>, lease: HeldLease, now: number): HeldLease | undefined {
  return record.state === 'waiting' ? undefined : { ...lease, expiresAt: now, released: true }
}
