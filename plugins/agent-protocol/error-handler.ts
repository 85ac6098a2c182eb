import { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify'
import { retryAfterOf } from '../agents/index.ts'
import { errorBody, TaskError, type TaskErrorCode } from './errors.ts'

/** What the framework, the store and the hosts' hooks raise, in our words. */
const CODES: Readonly<Record<string, TaskErrorCode>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_body',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_body',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_body',
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_REQ_FILE_TOO_LARGE: 'payload_too_large',
  AGT_ERR_UNAUTHENTICATED: 'unauthenticated',
  AGT_ERR_STORE_UNAVAILABLE: 'store_unavailable',
  AGT_ERR_STORE_FULL: 'store_unavailable',
  AGT_ERR_BUS_TOPIC_LIMIT: 'overloaded',
  AGT_ERR_RUN_LIMIT: 'overloaded',
  AGT_ERR_RUN_STORAGE_LIMIT: 'overloaded',
  AGT_ERR_STREAM_LIMIT: 'too_many_streams',
  AGT_ERR_STORE_CURSOR: 'invalid_cursor',
  AGT_ERR_SSE_CLOSING: 'closing'
}

/** Error handler of the plugin's scope: every body has a text under `error` and a code (agent-protocol 2). */
export function handleError (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = asTaskError(error)
  const retryAfter = retryAfterOf(error)
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  if (known !== undefined) {
    if (known.statusCode !== undefined && known.statusCode >= 500) request.log.warn({ err: error }, 'a task request could not be served')
    return send(reply, known)
  }
  const status = error.statusCode ?? 500
  if (status >= 500) {
    request.log.error({ err: error }, 'a task request failed')
    return send(reply, new TaskError('internal_error', 'internal error', { error_id: request.id }))
  }
  // Of a hook of the host's (a rate limit, say): its status and text stand.
  return reply.code(status).send({ error: error.message, code: error.code ?? 'refused' })
}

function asTaskError (error: FastifyError): TaskError | undefined {
  if (error instanceof TaskError) return error
  // A validator's error is the cause's wrapper.
  if (error.cause instanceof TaskError) return error.cause
  const code = typeof error.code === 'string' ? CODES[error.code] : undefined
  if (code !== undefined) return new TaskError(code, error.message)
  return error.validation === undefined ? undefined : new TaskError(error.validationContext === 'body' ? 'invalid_body' : 'invalid_query', error.message)
}

function send (reply: FastifyReply, error: TaskError): FastifyReply {
  return reply.code(error.statusCode ?? 500).type('application/json; charset=utf-8').send(errorBody(error))
}
