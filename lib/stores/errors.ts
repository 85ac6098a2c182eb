import createError from '@fastify/error'

/** The store did not answer in time or failed; whether the operation took effect is unknown. `cause` has the backend's own error. */
export const StoreUnavailableError = createError<[operation: string, options?: { readonly cause: unknown }]>(
  'AGT_ERR_STORE_UNAVAILABLE', 'The store did not complete %s; try again later.', 503)

/** The store has reached one of its limits and the policy for it is to refuse. */
export const StoreFullError = createError<[limit: string, value: number | string]>(
  'AGT_ERR_STORE_FULL', 'The store has reached %s (%s); try again later or raise the limit.', 503)

/** A listing cursor that no page of ours carried. */
export const StoreCursorError = createError<[]>(
  'AGT_ERR_STORE_CURSOR', 'The cursor is not one that a page of this list carried; list again from the start.', 400)
