import createError from '@fastify/error'
import { AgentError } from '../agent/index.ts'
import { type RunFailure } from './protocol.ts'

/** A protocol of that name is registered already, and it is another one. */
export const ProtocolTakenError = createError<[string]>('AGT_ERR_RUN_PROTOCOL_TAKEN', 'Another protocol is registered as "%s"; register each one once per engine.', 500)

/** The owner has as many runs under way as it may; nothing was started. */
export const RunLimitError = createError<[number]>('AGT_ERR_RUN_LIMIT', 'You have %d runs under way, which is the limit; wait for one to end.', 429)

/** The store keeps as much for the owner as it may; nothing was started. */
export const StorageLimitError = createError<[number]>('AGT_ERR_RUN_STORAGE_LIMIT', 'Your runs take up the %d bytes that they may; wait for old ones to expire.', 429)

/** Public text of a failure that does not say `expose`. */
const GENERIC_MESSAGE = 'The agent failed.'

/** The owner could not store what it had to tell (R9). */
export const STORE_UNAVAILABLE: RunFailure = { code: 'STORE_UNAVAILABLE', message: 'The run could not be stored.', retryable: true }

/** The run's owner is gone (R13). */
export const NODE_LOST: RunFailure = { code: 'NODE_LOST', message: 'The node that executed the run is gone.', retryable: true }

/** More was held behind a pause or terminal than a barrier takes (R3). */
export const BARRIER_OVERFLOW: RunFailure = { code: 'BARRIER_OVERFLOW', message: 'The agent went on for too long after its pause or result.' }

/** Outcome of an approved call of which nobody knows whether it ran (R21). */
export const OUTCOME_UNKNOWN = 'OUTCOME_UNKNOWN'

/**
 * What a client may know of something an agent threw, which can be anything: `undefined`, a string, an error whose
 * causes form a ring. Only an {@link AgentError} that says `expose` shows its message; its code is always shown.
 */
export function failureOf (thrown: unknown): RunFailure {
  if (!(thrown instanceof AgentError)) return { code: 'internal_error', message: GENERIC_MESSAGE, cause: thrown }
  return {
    code: thrown.code,
    message: thrown.publicMessage,
    cause: thrown,
    ...thrown.retryable !== undefined && { retryable: thrown.retryable }
  }
}
