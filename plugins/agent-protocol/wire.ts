import { type InputRequest } from '../../lib/agent/index.ts'

/** How much of a run its submitter sees (agent-protocol 4.2); each level holds the ones before it. */
export const DETAIL_LEVELS = ['status', 'full', 'verbose'] as const
/** @see {@link DETAIL_LEVELS} */
export type Detail = typeof DETAIL_LEVELS[number]

/** Types of the events of a task's stream. `STREAM_GAP` has no sequence: it tells that some are missing. */
export const TASK_EVENT_TYPES = [
  'RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT', 'REQUIRE_CONFIRM', 'STATUS',
  'TEXT_DELTA', 'THINKING_DELTA', 'AGENT_EVENT', 'STREAM_GAP'
] as const
/** @see {@link TASK_EVENT_TYPES} */
export type TaskEventType = typeof TASK_EVENT_TYPES[number]

/** What a task is reported as. */
export const TASK_STATUSES = ['pending', 'running', 'awaiting_confirm', 'success', 'error', 'cancelled'] as const
/** @see {@link TASK_STATUSES} */
export type TaskStatus = typeof TASK_STATUSES[number]

/** A call that waits for a yes or no. */
export interface PendingConfirm {
  readonly toolCallId: string
  readonly toolName: string
  /** The arguments as JSON text. */
  readonly toolInputJson: string
}

/** A call that waits for somebody else to execute it. */
export type PendingExternal = PendingConfirm

/** Why a stream does not start where its reader asked. */
export type GapReason = 'evicted' | 'ahead' | 'invalid'

/** One event of a task's stream, the JSON of an SSE frame's `data`. Readers ignore members and types that they do not know. */
export interface TaskEvent {
  /** Dense from 1, in the submitter's detail. */
  readonly seq?: number
  /** Sequence of the event before this one, in streams whose detail was narrowed. */
  readonly prevSeq?: number
  readonly type?: TaskEventType | (string & {})
  readonly taskId?: string
  readonly agentId?: string
  /** When the agent's event was made. */
  readonly timestamp?: string
  readonly text?: string
  readonly toolCallId?: string
  readonly toolName?: string
  readonly pendingConfirms?: readonly PendingConfirm[]
  readonly pendingExternal?: readonly PendingExternal[]
  readonly pendingInputs?: readonly InputRequest[]
  /** The state of a tool's result in upper case, or the task's {@link TaskStatus}. */
  readonly status?: string
  /** The task's result, on `STATUS success`. */
  readonly result?: string
  readonly structuredResult?: unknown
  readonly stopReason?: string
  readonly error?: string
  /** Machine-readable cause, on `RUN_ERROR`. */
  readonly code?: string
  /** Type of the agent's event. */
  readonly eventType?: string
  /** The agent's event as JSON text. The last member where the event has one: see {@link withoutPayload}. */
  readonly payload?: string
  /** Of a `STREAM_GAP`: what was asked for and what is kept. */
  readonly fromSeq?: number
  readonly oldestSeq?: number
  readonly lastSeq?: number
  readonly missed?: number
  readonly reason?: GapReason | (string & {})
  readonly streamEpoch?: string
}

/** A {@link TaskEvent} as a server writes it. */
export interface SentTaskEvent extends TaskEvent {
  readonly type: TaskEventType
}

const PAYLOAD = ',"payload":"'

/**
 * The JSON of an event without its payload, for slim clients. A quote inside any text is escaped, so that the separator stands only
 * where the member begins.
 */
export function withoutPayload (json: string): string {
  const at = json.lastIndexOf(PAYLOAD)
  return at === -1 ? json : `${json.slice(0, at)}}`
}

/** The level a text names, in any case and with blanks around; undefined for another one. */
export function readDetail (value: unknown): Detail | undefined {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : undefined
  return DETAIL_LEVELS.find((level) => level === text)
}

/** The status that a text names, the spellings of other servers with it; undefined for none. */
export function readStatus (value: unknown): TaskStatus | undefined {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : undefined
  if (text === 'failed') return 'error'
  if (text === 'canceled') return 'cancelled'
  return TASK_STATUSES.find((status) => status === text)
}

/** Whether nothing follows a status. */
export function isFinal (status: TaskStatus): boolean {
  return status === 'success' || status === 'error' || status === 'cancelled'
}
