import createError from '@fastify/error'

/** Machine-readable causes of an answer that is no success, with their status. */
const STATUS = {
  invalid_body: 400,
  task_id_required: 400,
  invalid_task_id: 400,
  input_required: 400,
  invalid_context: 400,
  invalid_deny_rules: 400,
  invalid_timeout: 400,
  invalid_from_seq: 400,
  invalid_query: 400,
  invalid_cursor: 400,
  invalid_decisions: 400,
  invalid_decision: 400,
  invalid_path: 400,
  unauthenticated: 401,
  task_not_found: 404,
  artifact_not_found: 404,
  agent_not_found: 404,
  streaming_disabled: 404,
  not_acceptable: 406,
  task_finished: 409,
  task_conflict: 409,
  session_busy_confirm: 409,
  not_awaiting: 409,
  stale_confirm: 409,
  confirm_expired: 409,
  hitl_disabled: 409,
  not_terminal: 409,
  replay_gap: 410,
  sequence_ahead: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  missing_decisions: 422,
  no_matching_decision: 422,
  wrong_kind: 422,
  overloaded: 429,
  too_many_streams: 429,
  internal_error: 500,
  closing: 503,
  store_unavailable: 503
} as const

/** @see {@link STATUS} */
export type TaskErrorCode = keyof typeof STATUS

/** What an error body holds beside its text and code. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** A request that is answered by an error body; `code` is `AGT_ERR_TASK_` and the wire's code in upper case. */
export class TaskError extends createError<[string]>('AGT_ERR_TASK', '%s') {
  readonly wireCode: TaskErrorCode
  readonly details: ErrorDetails

  constructor (wireCode: TaskErrorCode, message: string, details: ErrorDetails = {}) {
    super(message)
    this.code = `AGT_ERR_TASK_${wireCode.toUpperCase()}`
    this.statusCode = STATUS[wireCode]
    this.wireCode = wireCode
    this.details = details
  }
}

/** Nobody knows the task: never submitted, deleted, or somebody else's. */
export function taskNotFound (taskId: string): TaskError {
  return new TaskError('task_not_found', 'task not found', { task_id: taskId, status: 'error' })
}

/** The body of every answer that is no success: `error` is what the reference's clients show. */
export function errorBody (error: TaskError): Record<string, unknown> {
  return { ...error.details, error: error.message, code: error.wireCode }
}
