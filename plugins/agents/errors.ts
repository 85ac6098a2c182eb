import createError from '@fastify/error'

/** No agent of that name is registered; the client can choose another one. */
export const AgentNotFoundError = createError<[string]>('AGT_ERR_AGENT_NOT_FOUND', 'No agent is registered as "%s".', 404)

/** `getPrincipal` found nobody behind the request. */
export const UnauthenticatedError = createError('AGT_ERR_UNAUTHENTICATED', 'This request carries no identity that is accepted here.', 401)

/** The owner has as many streams open on this server as it may; nothing was started. */
export const StreamLimitError = createError<[number]>('AGT_ERR_STREAM_LIMIT', 'You have %d streams open here, which is the limit; close one.', 429)

/** An option needs a package that is not installed. */
export const MissingPackageError = createError<[string, string, { readonly cause: unknown }]>('AGT_ERR_PACKAGE_MISSING', 'Option "%s" needs a package that is not installed: npm install %s', 500)
