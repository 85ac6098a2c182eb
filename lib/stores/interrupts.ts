import type { JsonValue } from '../agent/json.ts'
import type { Pending } from '../agent/pending.ts'
import type { Owner, RunKey } from './run-key.ts'

export type InterruptKind = 'confirm' | 'external' | 'input'

/**
 * - `open`: may be claimed. `expired`: was open when its time ran out; may only be claimed to cancel it.
 * - `claimed`: somebody may be acting on it. `done`: the outcome is known. `unknown`: whoever claimed it is gone without an
 *   outcome; it is never acted on again (R21).
 * - `closed`: the run ended or moved on before anybody answered.
 */
export type InterruptState = 'open' | 'claimed' | 'done' | 'expired' | 'unknown' | 'closed'

/** Who acts on an interrupt: an execution of a run, that of the interrupt itself or one that answers it. */
export interface Claimant {
  /** `RunKey.id` of the claiming run. */
  readonly run: string
  /** The claiming run's fence. */
  readonly fence: number
}

/** What a pause asks for. */
export interface NewInterrupt {
  /** The protocol's own interrupt id, unique within its run. */
  readonly id: string
  readonly kind: InterruptKind
  /** The call or question that waits. What else a resume needs stands in the record's `input` and `detail` (R21). */
  readonly pending: Pending
  readonly createdAt: number
  /** Milliseconds since 1970, by the store's clock. Absent: it stays open as long as its run is kept. */
  readonly expiresAt?: number
}

/** An interrupt as the store keeps it. Frozen. */
export interface InterruptRecord extends NewInterrupt {
  readonly run: RunKey
  readonly session: string
  readonly state: InterruptState
  readonly decision?: JsonValue
  readonly claim?: Claimant & { readonly at: number }
  readonly outcome?: JsonValue
}

/** One answer. */
export interface Answer {
  readonly id: string
  /** Kept with the claim, so that the same answer given twice can be recognised. */
  readonly decision: JsonValue
  /** The answer gives the interrupt up rather than acting on it; the only one an expired interrupt takes. @default false */
  readonly cancels?: boolean
}

/**
 * Nothing was changed unless `claimed`.
 * - `taken`: at least one is not open; `records` are all that were asked for, so that the caller can compare decisions.
 * - `expired`: at least one has expired and its answer does not cancel.
 * - `missing`: these ids (or the run) are not there.
 * - `fenced`: the claimant is the interrupt's own run and no longer owns it.
 */
export type ClaimResult =
  | { readonly kind: 'claimed', readonly records: readonly InterruptRecord[] }
  | { readonly kind: 'taken', readonly records: readonly InterruptRecord[] }
  | { readonly kind: 'expired', readonly records: readonly InterruptRecord[] }
  | { readonly kind: 'missing', readonly ids: readonly string[] }
  | { readonly kind: 'fenced', readonly fence: number }

/** `lost`: the claim is not the caller's any more, `record` says what became of it. */
export type FinishResult =
  | { readonly kind: 'ok', readonly record: InterruptRecord }
  | { readonly kind: 'lost', readonly record: InterruptRecord }
  | { readonly kind: 'missing' }

/**
 * Approvals and questions of paused runs. They are opened by `RunStore.commit`, live under their run's key and go with it.
 *
 * At most once (R21): take the lease of the claiming run first, then `claim`, then act, then `finish` before the execution's next event. Each
 * method is atomic on one run key (that of the interrupts' run), except `open`.
 */
export interface InterruptStore {
  /** All interrupts of one run, in the order they were opened. */
  list (key: RunKey): Promise<readonly InterruptRecord[]>

  /**
   * What a session waits for: the open and expired interrupts of its runs, oldest first. Reads the owner's index, then each run, so
   * that it is not one instant; `claim` decides.
   */
  open (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]>

  /** Claims all or none. The same claimant claiming the same again is `claimed`, so that a retry is safe. */
  claim (key: RunKey, claimant: Claimant, answers: readonly Answer[]): Promise<ClaimResult>

  /** Writes what came of a claim. The same claimant finishing again is `ok` and changes nothing. */
  finish (key: RunKey, claimant: Claimant, id: string, outcome: JsonValue): Promise<FinishResult>

  /** Opens again what this claimant claimed and has provably not acted on. Ids that are not its claims are left alone. Idempotent. */
  release (key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void>

  /**
   * For who took a dead claimant's run over, with the new fence: the claims of that run under earlier fences that have no outcome
   * become `unknown`. Returns all of the claimant run's `unknown` interrupts, so that a retry returns the same.
   */
  abandon (key: RunKey, successor: Claimant): Promise<readonly InterruptRecord[]>
}
