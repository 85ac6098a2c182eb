import { RunInterrupted, type InterruptSource, type Normaliser, type Pending, type Usage } from '../agent/index.ts'
import { type InterruptRecord, type RunEndRecord, type RunPatch, type RunState } from '../stores/index.ts'
import { failureOf } from './errors.ts'
import { type ExecutionOutcome } from './execution.ts'
import { type ExecutionEnd, type InterruptedBy, type RunFailure } from './protocol.ts'

/**
 * Why an execution ends. The first cause wins on every path (C52); later ones are dropped and logged. `unavailable` and
 * `lost` have no projected end: nothing can be promised any more, or nothing may be told at all.
 */
export type Cause =
  | ExecutionOutcome
  | { readonly kind: 'failed', readonly error: RunFailure }
  | { readonly kind: 'cancelled', readonly message?: string }
  | { readonly kind: 'interrupted', readonly why: InterruptedBy }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'lost' }

/** A cause that the protocol has words for. */
export type ToldCause = Exclude<Cause, { readonly kind: 'unavailable' | 'lost' }>

/** The abort reason that an agent is given; always an `AbortError` (agent-events 9.4). */
export function abortReason (cause: Cause): RunInterrupted {
  return new RunInterrupted(sourceOf(cause), { message: `The run was ended: ${cause.kind === 'interrupted' ? cause.why : cause.kind}.` })
}

/** The cause of an execution that ended by itself. */
export function causeOf (outcome: ExecutionOutcome): Cause {
  // An agent that was interrupted from inside says so by throwing the reason.
  return outcome.kind === 'threw' && outcome.error instanceof RunInterrupted ? { kind: 'interrupted', why: 'agent' } : outcome
}

/** How the normaliser closes the stream. */
export function closingOf (cause: Cause): 'returned' | 'interrupted' | 'failed' {
  switch (cause.kind) {
    case 'returned': return 'returned'
    case 'cancelled':
    case 'interrupted': return 'interrupted'
    default: return 'failed'
  }
}

/** What the projection is told. Call it after the normaliser was closed; `open` makes the interrupts of what is pending. */
export function endOf (cause: ToldCause, used: Usage | undefined, open: (pending: readonly Pending[]) => readonly InterruptRecord[]): ExecutionEnd {
  const usage = used === undefined ? {} : { usage: used }
  switch (cause.kind) {
    case 'returned': return resultOf(cause.normaliser, usage, open)
    case 'threw': return { kind: 'failed', error: failureOf(cause.error), ...usage }
    case 'failed':
    case 'cancelled':
    case 'interrupted':
    case 'timeout': return { ...cause, ...usage }
  }
}

function resultOf ({ message, pending, reason }: Normaliser, usage: { readonly usage?: Usage }, open: (pending: readonly Pending[]) => readonly InterruptRecord[]): ExecutionEnd {
  if (pending.length > 0) return { kind: 'paused', pending, interrupts: open(pending), message, ...usage }
  if (reason === 'INTERRUPTED') return { kind: 'interrupted', why: 'agent', ...usage }
  return { kind: 'completed', reason, message, ...usage }
}

/** The state that a run takes with this end. A pause that left nothing to answer is over. */
export function stateOf (end: ExecutionEnd): RunState {
  switch (end.kind) {
    case 'completed': return 'completed'
    case 'paused': return end.interrupts.length > 0 ? 'waiting' : 'completed'
    case 'cancelled':
    case 'interrupted': return 'cancelled'
    case 'timeout':
    case 'failed': return 'failed'
  }
}

/** What the record keeps of an end, for those who ask later. */
export function endRecordOf (end: ExecutionEnd): RunEndRecord {
  switch (end.kind) {
    case 'completed': return { kind: end.kind, code: end.reason }
    case 'cancelled': return { kind: end.kind, ...end.message !== undefined && { message: end.message } }
    case 'interrupted': return { kind: end.kind, code: end.why }
    case 'failed': return { kind: end.kind, code: end.error.code, message: end.error.message }
    default: return { kind: end.kind }
  }
}

/** When a run that ends now has ended, and when it may be forgotten. */
export function endTimes (keepMs: number | undefined): Pick<RunPatch, 'endedAt' | 'expiresAt'> {
  const endedAt = Date.now()
  return { endedAt, ...keepMs !== undefined && { expiresAt: endedAt + keepMs } }
}

function sourceOf (cause: Cause): InterruptSource {
  return cause.kind === 'cancelled' || (cause.kind === 'interrupted' && cause.why === 'disconnect') ? 'user' : 'system'
}
