import createError from '@fastify/error'

/** The request's `Accept` header leaves event streams out; answered before anything is opened. */
export const NotAcceptableError = createError('AGT_ERR_STREAM_NOT_ACCEPTABLE', 'This resource is a stream: accept text/event-stream.', 406)
