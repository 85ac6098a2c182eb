import { createHash } from 'node:crypto'
import { type Run } from '../../lib/runs/index.ts'
import { type InterruptRecord, type InterruptStore, isEnded, type RunRecord } from '../../lib/stores/index.ts'
import { errorOf, isHeld, resultIn, statusOf, stopReasonOf } from './ending.ts'
import { sortPending } from './projection.ts'
import { submissionOf, taskDetailOf } from './protocol.ts'
import { type TaskStatus } from './wire.ts'

/** A task as `GET /tasks/{id}` tells it. */
export type SnapshotBody = Record<string, unknown> & { readonly task_id: string, readonly status: TaskStatus }

/** What only this process knows of a task. */
export interface LocalState {
  /** Is executed here, or about to be. */
  readonly isExecuting: boolean
  /** Waits for a free place to run. */
  readonly isQueued: boolean
  readonly isCancelling: boolean
}

/** What a task that waits is waiting for, in the names of the wire; with the text that a resume may name to be sure. */
export function pendingBody (open: readonly InterruptRecord[]): Record<string, unknown> {
  const { confirms, external, inputs } = sortPending(open.map(({ pending }) => pending))
  return {
    pending_confirms: confirms,
    ...external.length > 0 && { pending_external: external },
    ...inputs.length > 0 && { pending_inputs: inputs },
    confirm_id: confirmIdOf(open)
  }
}

/** Names one pause: another one has another text, even when it asks for the same calls. */
export function confirmIdOf (open: readonly InterruptRecord[]): string {
  return createHash('sha256').update(JSON.stringify(open.map(({ id, createdAt }) => [id, createdAt]))).digest('base64url').slice(0, 16)
}

/** The interrupts of a waiting task that somebody may still answer. */
export async function openInterrupts (interrupts: InterruptStore, record: RunRecord): Promise<readonly InterruptRecord[]> {
  if (record.state !== 'waiting' || isHeld(record)) return []
  const all = await interrupts.list(record.key)
  return all.filter(({ state }) => state === 'open' || state === 'expired')
}

/** The status of a task, with what this process knows. */
export function reportedStatus (record: RunRecord, { isExecuting, isQueued }: LocalState): TaskStatus {
  const { state } = record
  if (isQueued && !isEnded(state)) return 'pending'
  // Answered a moment ago, its record still says that it waits.
  return isExecuting && state === 'waiting' ? 'running' : statusOf(record)
}

/** The body of a snapshot: the reference's members, and ours beside them. */
export function snapshotBody (record: RunRecord, open: readonly InterruptRecord[], local: LocalState, topic?: Run['topic']): SnapshotBody {
  const { createdAt, updatedAt, endedAt } = record
  const result = resultIn(record)
  const error = errorOf(record)
  const stopReason = record.state === 'completed' ? stopReasonOf(record.end?.code) : undefined
  const { parentSessionId, userId } = submissionOf(record)
  const reported = reportedStatus(record, local)
  // All was answered, on another node: it is about to go on there.
  const status = reported === 'awaiting_confirm' && open.length === 0 ? 'running' : reported
  return {
    task_id: record.clientId,
    status,
    ...error !== undefined && { error: error.error, code: error.code },
    ...result !== undefined && {
      result: result.text,
      ...result.structured !== undefined && { structured_result: result.structured },
      ...result.usage !== undefined && { usage: result.usage }
    },
    ...stopReason !== undefined && { stop_reason: stopReason },
    ...status === 'awaiting_confirm' && pendingBody(open),
    agent_id: record.agent,
    session_id: taskDetailOf(record).sessionId,
    ...userId !== undefined && { user_id: userId },
    ...parentSessionId !== undefined && { parent_session_id: parentSessionId },
    created_at: new Date(createdAt).toISOString(),
    updated_at: new Date(updatedAt).toISOString(),
    ...endedAt !== undefined && { finished_at: new Date(endedAt).toISOString() },
    run_count: runCountOf(record),
    cancel_requested: local.isCancelling || record.end?.kind === 'cancelled',
    stream_epoch: record.epoch,
    ...topic !== undefined
      ? { oldest_seq: topic.oldest, last_seq: topic.stored }
      : isEnded(record.state) || record.state === 'waiting' ? { last_seq: record.lastSeq } : {}
  }
}

/** Executions so far: each one begins an ownership that numbers events of its own. */
export function runCountOf ({ firstSeqByFence }: RunRecord): number {
  return new Set(firstSeqByFence.map(([, first]) => first)).size
}

/** A strong validator of a body. */
export function etagOf (text: string): string {
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`
}
