import createError from '@fastify/error'
import { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify'
import { retryAfterOf } from '../agents/index.ts'
import { errorBody, HttpErrorCode, invalidInputBody } from './errors.ts'
import { type ErrorBody, type InputIssue } from './schemas.ts'

/** The body does not fit its schema; carries what is wrong, field by field, and nothing of the values. */
export class InvalidInputError extends createError('AGT_ERR_AGUI_INPUT', 'The request is not a valid RunAgentInput.', 400) {
  readonly issues: readonly InputIssue[]

  constructor (issues: readonly InputIssue[]) {
    super()
    this.issues = issues
  }
}

/** The client takes no event stream. */
export const NotAcceptableError = createError('AGT_ERR_AGUI_NOT_ACCEPTABLE', 'This route answers with text/event-stream; the Accept header excludes it.', 406)

/** The client speaks another major version of the protocol. */
export const UnsupportedProtocolVersionError = createError('AGT_ERR_AGUI_PROTOCOL_VERSION', 'This server speaks AG-UI 1.0; the requested protocolVersion is of another major version.', 400)

/** The key was used before, for another request. */
export const IdempotencyConflictError = createError('AGT_ERR_AGUI_IDEMPOTENCY', 'This idempotency key was used for another request.', 409)

/** The thread has an active run; only with `conflictStatus: 409`. */
export const ThreadBusyError = createError<[string]>('AGT_ERR_AGUI_THREAD_BUSY', 'The thread is busy with run "%s".', 409)

/** Code of the JSON body for each error that Fastify or we raise before a stream is open. */
const CODES: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: HttpErrorCode.invalidJson,
  FST_ERR_CTP_EMPTY_JSON_BODY: HttpErrorCode.invalidJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: HttpErrorCode.invalidJson,
  FST_ERR_CTP_BODY_TOO_LARGE: HttpErrorCode.tooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: HttpErrorCode.unsupportedMediaType,
  AGT_ERR_AGUI_NOT_ACCEPTABLE: HttpErrorCode.notAcceptable,
  AGT_ERR_AGUI_PROTOCOL_VERSION: HttpErrorCode.unsupportedProtocolVersion,
  AGT_ERR_AGUI_IDEMPOTENCY: 'IDEMPOTENCY_CONFLICT',
  AGT_ERR_AGUI_THREAD_BUSY: HttpErrorCode.conflict,
  AGT_ERR_AGENT_NOT_FOUND: HttpErrorCode.agentNotFound,
  AGT_ERR_UNAUTHENTICATED: HttpErrorCode.unauthenticated,
  AGT_ERR_RUN_LIMIT: HttpErrorCode.tooManyRuns,
  AGT_ERR_STREAM_LIMIT: HttpErrorCode.tooManyStreams,
  AGT_ERR_RUN_STORAGE_LIMIT: HttpErrorCode.storageLimit
}

/**
 * Answers everything that goes wrong before a stream is open with the JSON body of this protocol (ag-ui 2.2).
 * What is our own fault is logged and not shown.
 */
export function handleError (error: FastifyError | InvalidInputError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof InvalidInputError) return send(reply, 400, invalidInputBody(error.issues))
  const status = error.statusCode ?? 500
  const retryAfter = retryAfterOf(error)
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  if (status === 503 && error.code?.startsWith('AGT_ERR_')) {
    // Closing, a store that is away, a limit that is reached: what came of it inside is for the log alone.
    request.log.warn({ err: error }, 'request refused for now')
    return send(reply, 503, errorBody(HttpErrorCode.unavailable, 'This server cannot take the request now; try again later.'))
  }
  if (status >= 500) {
    request.log.error({ err: error }, 'request failed')
    return send(reply, status, errorBody(HttpErrorCode.internal, 'The server could not handle this request.'))
  }
  // secure-json-parse refuses `__proto__` with a SyntaxError that has a status and no code of Fastify's.
  const code = CODES[error.code] ?? (error instanceof SyntaxError ? HttpErrorCode.invalidJson : error.code ?? `HTTP_${status}`)
  return send(reply, status, errorBody(code, error.message))
}

/** A path under the prefix that nobody serves. */
export function handleNotFound (request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return send(reply, 404, errorBody(HttpErrorCode.notFound, `There is no ${request.method} here.`))
}

function send (reply: FastifyReply, status: number, body: ErrorBody): FastifyReply {
  // A handler may have prepared its stream's headers already.
  return reply.code(status).type('application/json; charset=utf-8').send(body)
}
