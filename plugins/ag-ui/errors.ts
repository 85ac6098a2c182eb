import { AgentError } from '../../lib/agent/index.ts'
import { type AgUiEventOf, type TokenUsage } from './event-schemas.ts'
import { type ErrorBody, type InputIssue } from './schemas.ts'

/** Codes of RUN_ERROR that this plugin makes itself (section 15.1); an agent's own code is passed on beside them. */
export const RunErrorCode = {
  /** The run took longer than `runTimeoutMs`, or the agent says something timed out. */
  timeout: 'TIMEOUT_ERROR',
  /** The agent was interrupted, and not by the stop verb. */
  interrupted: 'INTERRUPTED_ERROR',
  /** The request cannot be turned into what the agent takes. */
  invalidInput: 'INVALID_INPUT_ERROR',
  /** Everything else. */
  internal: 'INTERNAL_ERROR',
  /** `resume` does not fit the thread's open interrupts, or the thread is busy. */
  contract: 'AGUI_INTERRUPT_CONTRACT_ERROR',
  /** Stopped by the stop verb; only told this way to clients before 1.0. */
  cancelled: 'CANCELLED',
  /** The agent could not be found after the stream had been opened. */
  agentNotFound: 'AGENT_NOT_FOUND'
} as const

/** Codes of JSON error bodies (section 2.2). */
export const HttpErrorCode = {
  invalidJson: 'INVALID_JSON',
  invalidInput: 'INVALID_INPUT_ERROR',
  unsupportedProtocolVersion: 'UNSUPPORTED_PROTOCOL_VERSION',
  unauthenticated: 'UNAUTHENTICATED',
  agentNotFound: 'AGENT_NOT_FOUND',
  notFound: 'NOT_FOUND',
  notAcceptable: 'NOT_ACCEPTABLE',
  conflict: 'AGUI_INTERRUPT_CONTRACT_ERROR',
  tooLarge: 'PAYLOAD_TOO_LARGE',
  unsupportedMediaType: 'UNSUPPORTED_MEDIA_TYPE',
  tooManyRuns: 'TOO_MANY_RUNS',
  tooManyStreams: 'TOO_MANY_STREAMS',
  storageLimit: 'STORAGE_LIMIT',
  unavailable: 'SERVICE_UNAVAILABLE',
  internal: 'INTERNAL_ERROR'
} as const

/** A request that is well formed but cannot be used; the client can fix it. Its message names no value of the request. */
export class AguiInputError extends AgentError {
  constructor (message: string) {
    super({ code: RunErrorCode.invalidInput, message, statusCode: 400, expose: true })
  }
}

/** What is known of a failure, as the engine reports it. */
export interface Failure {
  readonly code: string
  /** Public text. */
  readonly message: string
  /** What was thrown. */
  readonly cause?: unknown
}

/** A failure as RUN_ERROR tells it (section 15.1); `exposeErrors` also shows the text of errors that nobody cleared for clients. */
export function runErrorOf (failure: Failure, exposeErrors: boolean): { readonly code: string, readonly message: string } {
  const code = codeOf(failure)
  const { cause } = failure
  const message = exposeErrors && cause instanceof Error && cause.message !== '' ? cause.message : failure.message
  // An empty text would leave the page with nothing to show: the reference falls back to the kind of error.
  return { code, message: message !== '' ? message : cause instanceof Error ? cause.name : 'Error' }
}

function codeOf ({ code, cause }: Failure): string {
  if (isTimeout(cause) || /timeout|timed_out|^ETIMEDOUT$/i.test(code)) return RunErrorCode.timeout
  if (cause instanceof Error && cause.name === 'AbortError') return RunErrorCode.interrupted
  return code === '' || code === 'internal_error' ? RunErrorCode.internal : code
}

function isTimeout (cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  return cause.name === 'TimeoutError' || ('code' in cause && typeof cause.code === 'string' && /timeout|^ETIMEDOUT$/i.test(cause.code))
}

/** The terminal of a failed run. `now` is in milliseconds; a RUN_ERROR always carries it, as in the reference. */
export function runError (code: string, message: string, now: number, usage?: readonly TokenUsage[]): AgUiEventOf<'RUN_ERROR'> {
  return { type: 'RUN_ERROR', message, code, timestamp: Math.trunc(now), ...usage !== undefined && usage.length > 0 && { usage: [...usage] } }
}

/** The JSON body of an answer that is not a stream. The message sums up the issues, which name no values. */
export function errorBody (code: string, message: string, issues: readonly InputIssue[] = []): ErrorBody {
  return { error: { code, message, ...issues.length > 0 && { issues: [...issues] } } }
}

/** The body for input that does not fit its schema: `threadId: required; messages: must be an array, not a string`. */
export function invalidInputBody (issues: readonly InputIssue[]): ErrorBody {
  return errorBody(HttpErrorCode.invalidInput, issues.map(({ path, reason }) => `${path}: ${reason}`).join('; '), issues)
}
