import type { Fold, LogEvents, LogLimits } from './event-log.ts'
import type { NewInterrupt } from './interrupts.ts'
import type { JsonObject, JsonValue } from '../agent/json.ts'
import type { LeaseRequest } from './leases.ts'
import type { RunKey } from './run-key.ts'

/** Where a run is in its life. `completed`, `failed`, `cancelled` and `lost` are terminal and never change again. */
export type RunState = 'pending' | 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled' | 'lost'

/** The states in which a run is over. */
export const ENDED_STATES = ['completed', 'failed', 'cancelled', 'lost'] as const satisfies readonly RunState[]

/** True for a state that never changes again. */
export function isEnded (state: RunState): boolean {
  return (ENDED_STATES as readonly RunState[]).includes(state)
}

/** How a run ended, for those who ask later. */
export interface RunEndRecord {
  readonly kind: string
  readonly code?: string
  readonly message?: string
  /** What the protocol keeps of the result, so that nobody has to read the log for it. */
  readonly result?: JsonValue
}

/** Runs that belong together: an answer to a paused run that is a run of its own (R2). The ids are `RunKey.id`s of the same owner. */
export interface RunLinks {
  readonly resumes?: string
  readonly resumedBy?: string
}

/** What the starter of a run decides; the rest of the record is the store's. */
export interface NewRun {
  readonly key: RunKey
  /** The protocol's own id of the run, as the client knows it. Not unique. */
  readonly clientId: string
  readonly session: string
  readonly agent: string
  readonly state: 'pending' | 'running'
  /** Marks this life of the log in the ids that clients keep (R1); new for each run. */
  readonly epoch: string
  /** Milliseconds since 1970, by the caller's clock: the index entry written before the record holds the same number. */
  readonly createdAt: number
  /** Fingerprint of the request's body (R15). */
  readonly fingerprint?: string
  /** What is fixed at the start: profile, exposure, detail ceiling (R11). */
  readonly detail: JsonObject
  /** What a resume or a restart needs (R14, R21). */
  readonly input?: JsonValue
  readonly links?: RunLinks
  /** Roughly what the run takes in the store: its input, and from its first pause or end on its log. Absent: nobody counts. */
  readonly bytes?: number
  /** Trace context in which the run was started, for those who trace it on. */
  readonly trace?: string
}

/** A run as the store keeps it. Frozen: a change goes through the store or not at all. */
export interface RunRecord extends Omit<NewRun, 'state'> {
  readonly state: RunState
  /** 1 when created, one more for each `update`, `commit`, `acquire` and `takeover`. */
  readonly version: number
  /** The number of the current ownership; 1 when created, raised by `acquire` and `takeover` only. Never falls. */
  readonly fence: number
  /** The node that holds or last held the lease. */
  readonly node: string
  /** The last sequence as of the last `commit`, `acquire` or `takeover`: a lower bound. The log itself knows better (`EventLog.read`). */
  readonly lastSeq: number
  /** At which sequence each ownership began to number, oldest first, so that a bare sequence can be found in the log (R4). */
  readonly firstSeqByFence: readonly (readonly [fence: number, firstSeq: number])[]
  /** Milliseconds since 1970 of the last change, by the store's clock. */
  readonly updatedAt: number
  readonly endedAt?: number
  /** From this moment (store's clock) record, log, fold and interrupts are gone together. Absent: the store's own default after the end. */
  readonly expiresAt?: number
  readonly end?: RunEndRecord
}

/** The fields of a record that its owner may change. */
export type RunField = 'state' | 'endedAt' | 'expiresAt' | 'end' | 'links' | 'detail' | 'input' | 'fingerprint' | 'bytes'

/** A shallow change: each named field is replaced whole, `undefined` removes it. */
export type RunPatch = { readonly [Field in RunField]?: RunRecord[Field] | undefined }

/** What must still be true for a change to be made. */
export interface Expected {
  readonly version: number
  /** The caller's ownership; absent where the caller owns nothing (linking a run that has ended, say). */
  readonly fence?: number
  /**
   * A random text of the caller, the same for a retry of the same change. The store remembers that of the last change: a retry of it
   * (its acknowledgement was lost) answers `ok` with the record instead of `stale`. Without it a retry can not be told from a rival.
   */
  readonly op?: string
}

/** What a barrier must find: always an owner, always retryable. */
export interface ExpectedAtBarrier extends Expected {
  readonly fence: number
  readonly op: string
}

/** What one barrier writes (R3). */
export interface Barrier {
  readonly patch: RunPatch
  /** Sequence of the first of `events`; without events, the next sequence. */
  readonly firstSeq: number
  readonly events: LogEvents
  readonly limits?: LogLimits
  /** Interrupts to open. One whose id the run already has replaces it, unless that one is `claimed` or `unknown`: then the barrier is `stale`. */
  readonly interrupts?: readonly NewInterrupt[]
  /** The run's interrupts that are open become `closed`: nobody can answer them any more. Applied before `interrupts`. @default false */
  readonly closeInterrupts?: boolean
  readonly fold?: Fold
}

/** `created` also for a retry with the same `lease.op`; `exists` is another run under this key. */
export type CreateResult =
  | { readonly kind: 'created', readonly record: RunRecord }
  | { readonly kind: 'exists', readonly record: RunRecord }

/** `stale`: version or fence differ from what was expected, or the run has ended and the patch would end it differently. */
export type UpdateResult =
  | { readonly kind: 'ok', readonly record: RunRecord }
  | { readonly kind: 'stale', readonly record: RunRecord }
  | { readonly kind: 'missing' }

/** `misplaced`: the log ends at `last`, so `firstSeq` should have been `last + 1`; nothing was written. */
export type CommitResult = UpdateResult | { readonly kind: 'misplaced', readonly last: number, readonly record: RunRecord }

/**
 * Run records: create, read, compare-and-set, and the barrier.
 *
 * Every method is atomic on one run key and, unless it says otherwise, may be repeated after a failure whose effect is unknown.
 * Methods reject only when the store can not be reached or is full (`AGT_ERR_STORE_*`); everything a caller can meet in
 * ordinary life is a tagged result.
 */
export interface RunStore {
  /**
   * Writes the record and takes its lease in one step, so that no run exists that nobody would reap. Fence 1, version 1.
   * Write the index entry first (`RunIndex.add`, R20). Rejects with `AGT_ERR_STORE_FULL` when the store takes no more runs.
   */
  create (run: NewRun, lease: LeaseRequest): Promise<CreateResult>

  /** The record, or nothing: unknown, another owner's and expired look the same. */
  get (key: RunKey): Promise<RunRecord | undefined>

  /**
   * Changes the record if it is still what the caller saw. A patch that names a state other than `pending` and `running` ends the lease in the
   * same step. `state`, `end` and `endedAt` of a run that has ended never change: such a patch is `stale`.
   */
  update (key: RunKey, expected: Expected, patch: RunPatch): Promise<UpdateResult>

  /**
   * The barrier of R3: record, events, interrupts and fold become true together or not at all. The lease ends as in `update`. Events
   * are placed as `EventLog.append` places them.
   */
  commit (key: RunKey, expected: ExpectedAtBarrier, barrier: Barrier): Promise<CommitResult>

  /** Removes everything under the run key, then its index entries. Removing what is not there is success. */
  delete (key: RunKey): Promise<void>
}
