import { type IncomingHttpHeaders } from 'node:http'
import { AgentError, isObject } from '../../../lib/agent/index.ts'
import { isTransient } from '../../../lib/net/index.ts'

/** A task service answered with an error status. */
export class TaskAnswerError extends Error {
  override readonly name = 'TaskAnswerError'
  readonly code = 'AGT_ERR_TASK_ANSWER'
  readonly status: number
  /** The service's own machine-readable code, if it gave one. */
  readonly reason: string | undefined
  /** The service's own text. */
  readonly text: string
  /** Milliseconds that the service wants to be left alone. */
  readonly retryAfterMs: number | undefined
  readonly body: Readonly<Record<string, unknown>>

  constructor (status: number, headers: IncomingHttpHeaders, body: unknown) {
    const fields = isObject(body) ? body : {}
    const text = typeof fields.error === 'string' ? fields.error : `status ${status}`
    super(`The task service answered ${status}: ${text}`)
    this.status = status
    this.reason = typeof fields.code === 'string' ? fields.code : undefined
    this.text = text
    this.retryAfterMs = readRetryAfter(headers['retry-after'])
    this.body = fields
  }
}

/** The service does not know a task that it has taken. */
export class TaskLostError extends Error {
  override readonly name = 'TaskLostError'
  readonly code = 'AGT_ERR_TASK_LOST'

  constructor (taskId: string) {
    super(`The task service knows no task ${taskId} any more`)
  }
}

/** Statuses of a service, or of a proxy before it, that are about the moment and not about the request. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** Whether the same request may succeed later. */
export function isPassing (error: unknown): boolean {
  return error instanceof TaskAnswerError ? PASSING.has(error.status) : isTransient(error)
}

/** The failure as a run tells it: a stable code and a sentence without addresses and headers; what happened is the cause. */
export function toAgentError (error: unknown, agentName: string): unknown {
  if (error instanceof TaskAnswerError) return fromAnswer(error, agentName)
  if (error instanceof TaskLostError) {
    return new AgentError({ code: 'task_not_found', message: `The remote agent ${agentName} has lost the task.`, statusCode: 502, expose: true, cause: error })
  }
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string' || !error.code.startsWith('AGT_ERR_NET_')) return error
  return new AgentError({
    code: 'remote_unreachable', message: `The remote agent ${agentName} cannot be reached.`, statusCode: 502, retryable: true, expose: true, cause: error
  })
}

function fromAnswer (error: TaskAnswerError, agentName: string): AgentError {
  const { status } = error
  if (status === 401 || status === 403) {
    return new AgentError({ code: 'remote_unauthorized', message: `The remote agent ${agentName} refused the credentials.`, statusCode: 502, expose: true, cause: error })
  }
  if (isPassing(error)) {
    return new AgentError({ code: 'remote_unreachable', message: `The remote agent ${agentName} is not available.`, statusCode: 503, retryable: true, expose: true, cause: error })
  }
  return new AgentError({
    code: error.reason ?? 'remote_refused', message: `The remote agent ${agentName} refused: ${error.text}`, statusCode: 502, expose: true, cause: error
  })
}

function readRetryAfter (value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  if (/^\d{1,6}$/.test(value)) return Number(value) * 1_000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}
