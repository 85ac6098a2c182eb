/** Seconds after which a request that was refused for now is worth another try, at least. */
const MIN_S = 1
/** They come back spread over so many seconds, so that they do not all come at once. */
const SPREAD_S = 5
/** Stored runs go as they expire, which takes its time. */
const STORAGE_S = 60

/** Value of `Retry-After` for an error of ours that says "not now" (429, 503); undefined for every other one. */
export function retryAfterOf (error: { readonly statusCode?: number | undefined, readonly code?: string | undefined }): number | undefined {
  const { statusCode, code = '' } = error
  if (!code.startsWith('AGT_ERR_') || (statusCode !== 429 && statusCode !== 503)) return undefined
  if (code === 'AGT_ERR_RUN_STORAGE_LIMIT') return STORAGE_S
  return MIN_S + Math.floor(Math.random() * SPREAD_S)
}
