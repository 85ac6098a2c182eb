import { APICallError, RetryError } from 'ai'
import { AgentError } from '../../agent/index.ts'

/**
 * What clients are told of a model's failure: one of a few constant sentences. What the provider said stands in
 * `cause` alone, since it may repeat keys, addresses and prompts.
 */
export function toModelError (thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown
  const cause = RetryError.isInstance(thrown) ? thrown.lastError : thrown
  const status = APICallError.isInstance(cause) ? cause.statusCode : undefined
  if (status === 429) return failure('rate_limited', 'The model provider is limiting requests; try again later.', 429, true, cause)
  if (APICallError.isInstance(cause) && cause.isRetryable) {
    return failure('model_unavailable', 'The model provider cannot be reached or is overloaded; try again later.', 503, true, cause)
  }
  return failure('model_failed', 'The model could not answer.', 502, false, cause)
}

function failure (code: string, message: string, statusCode: number, retryable: boolean, cause: unknown): AgentError {
  return new AgentError({ code, message, statusCode, retryable, expose: true, cause })
}
