import { type Static, Type } from '@sinclair/typebox'

const count = Type.Number({ minimum: 0 })

/**
 * Tokens of one or more model calls. `cachedTokens`, `cacheCreationTokens` and `reasoningTokens` are parts of the input and
 * output counts, not additions; `time` is in seconds.
 */
export const Usage = Type.Object({
  inputTokens: count,
  outputTokens: count,
  cachedTokens: Type.Optional(count),
  cacheCreationTokens: Type.Optional(count),
  reasoningTokens: Type.Optional(count),
  totalTokens: Type.Optional(count),
  time: Type.Optional(count)
}, { additionalProperties: true })
/** @see {@link Usage} */
export type Usage = Static<typeof Usage>
