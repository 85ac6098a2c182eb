import type { JsonValue } from '../agent/json.ts'
import type { Owner } from './run-key.ts'

/** A place in a session's queue. */
export interface GateTicket {
  /** Unique within the session; a run's id. */
  readonly id: string
  /** Milliseconds the ticket lives without `renew`. `undefined` = parked: it stays until it leaves (a waiting run, R19). */
  readonly ms: number | undefined
  /** For others to see: who holds the gate and how to reach it. */
  readonly data?: JsonValue
}

/** The ticket at the head. */
export interface GateHolder {
  readonly id: string
  readonly parked: boolean
  readonly data?: JsonValue
}

/** `position` 0 is the head and may run. */
export interface GatePlace {
  readonly kind: 'in'
  readonly head: boolean
  readonly position: number
  readonly holder: GateHolder
}

/** `full`: there were `maxTickets` live tickets already. */
export type EnterResult = GatePlace | { readonly kind: 'full', readonly holder: GateHolder }

/** `out`: the ticket is not in the queue (left, or ran out and was passed over). */
export type RenewTicketResult = GatePlace | { readonly kind: 'out' }

/**
 * One queue a session: the head runs, the others wait in order of arrival, tickets that ran out are dropped by the next call that
 * meets them (R19). Atomic on one owner key.
 */
export interface GateStore {
  /**
   * Queues the ticket at the end. One that is queued already keeps its place and gets the new `ms` and `data`. `maxTickets` counts those
   * before it as well: 1 = only if the gate is free. @default maxTickets no limit
   */
  enter (owner: Owner, session: string, ticket: GateTicket, maxTickets?: number): Promise<EnterResult>

  /** Prolongs the ticket (`undefined` parks it) and says where it stands. A ticket that ran out but was not passed over yet is prolonged. */
  renew (owner: Owner, session: string, id: string, ms: number | undefined): Promise<RenewTicketResult>

  /** Takes the ticket out. Idempotent. Returns the new head, for the caller to wake. */
  leave (owner: Owner, session: string, id: string): Promise<GateHolder | undefined>

  /** The head, or nothing. */
  holder (owner: Owner, session: string): Promise<GateHolder | undefined>
}
