import { type RunRecord } from '../stores/index.ts'
import { type Ticket } from './gate.ts'
import { type Claims } from './interrupts.ts'
import { type RunObserver } from './observer.ts'
import { type Slot } from './slots.ts'
import { type ExecutionSpec } from './spec.ts'

/** What one ownership of a run starts with. */
export interface Tenure {
  /** As it was after the lease was taken. */
  readonly record: RunRecord
  /** Monotonic clock before the lease was asked for. */
  readonly takenAt: number
  /** What to execute, and the place in the session's queue; without it the waiting run is only being ended. */
  readonly work?: { readonly spec: ExecutionSpec, readonly ticket: Ticket, readonly slot?: Slot | undefined }
  readonly claims?: Claims | undefined
  /** Who watches what begins now. */
  readonly observer?: RunObserver | undefined
}

/** How many executions of the run have told anything before this one: an ownership without events was none. */
export function executionOf ({ firstSeqByFence }: RunRecord): number {
  return new Set(firstSeqByFence.map(([, firstSeq]) => firstSeq)).size - 1
}
