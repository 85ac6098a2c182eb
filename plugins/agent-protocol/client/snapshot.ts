import { isObject, type Pending } from '../../../lib/agent/index.ts'
import { decodeTaskEvent } from '../events.ts'
import { readStatus, type TaskStatus } from '../wire.ts'

/** How a task stands. */
export interface TaskSnapshot {
  readonly taskId: string
  readonly status: TaskStatus
  /** The text of a task that has succeeded; services like the reference tell it by `wait` alone. */
  readonly result?: string
  readonly error?: string
  /** Machine-readable cause of a failure. */
  readonly code?: string
  /** What an `awaiting_confirm` task waits for. */
  readonly pending: readonly Pending[]
  /** Sequence of the newest event, where the service tells it. */
  readonly lastSeq?: number
  /** Names the pause, where the service does. */
  readonly confirmId?: string
}

/** What the reference says of a task that it does not know, with a good status. */
const UNKNOWN = 'task not found'

/** Reads the answer to a status or a wait request; undefined when it is none. */
export function readSnapshot (taskId: string, body: unknown): TaskSnapshot | undefined {
  if (!isObject(body)) return undefined
  const status = readStatus(body.status)
  if (status === undefined) return undefined
  const { result, error, code, last_seq: lastSeq, confirm_id: confirmId } = body
  return {
    taskId,
    status,
    pending: readPending(body),
    ...typeof result === 'string' && { result },
    ...typeof error === 'string' && { error },
    ...typeof code === 'string' && { code },
    ...typeof lastSeq === 'number' && Number.isSafeInteger(lastSeq) && { lastSeq },
    ...typeof confirmId === 'string' && { confirmId }
  }
}

/** Whether a snapshot stands for no task at all. */
export function isUnknown ({ status, error, code }: TaskSnapshot): boolean {
  return status === 'error' && (code === 'task_not_found' || error === UNKNOWN)
}

/** What an event or a snapshot that says so waits for. */
export function readPending (body: Readonly<Record<string, unknown>>): Pending[] {
  const { pending_confirms: pendingConfirms, pending_external: pendingExternal, pending_inputs: pendingInputs } = body
  // The same members as an event's, in another case; the codec looks at each.
  const events = decodeTaskEvent({ type: 'REQUIRE_CONFIRM', pendingConfirms, pendingExternal, pendingInputs } as Parameters<typeof decodeTaskEvent>[0])
  return events.flatMap((event): Pending[] => {
    switch (event.type) {
      case 'REQUIRE_USER_CONFIRM': return event.toolCalls.map((toolCall) => ({ kind: 'confirm', replyId: '', toolCall }))
      case 'REQUIRE_EXTERNAL_EXECUTION': return event.toolCalls.map((toolCall) => ({ kind: 'external', replyId: '', toolCall }))
      case 'REQUIRE_INPUT': return event.requests.map((request) => ({ kind: 'input', replyId: '', request }))
      default: return []
    }
  })
}
