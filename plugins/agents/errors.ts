import createError from '@fastify/error'

/** No agent of that name is registered; the client can choose another one. */
export const AgentNotFoundError = createError<[string]>('AGT_ERR_AGENT_NOT_FOUND', 'No agent is registered as "%s".', 404)

/** `getPrincipal` found nobody behind the request. */
export const UnauthenticatedError = createError('AGT_ERR_UNAUTHENTICATED', 'This request carries no identity that is accepted here.', 401)
