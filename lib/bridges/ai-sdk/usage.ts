import type { LanguageModelUsage } from 'ai'
import type { Usage } from '../../agent/index.ts'

/** Tokens of one model call; undefined when the provider reported none. */
export function toUsage (usage: LanguageModelUsage): Usage | undefined {
  const { inputTokens, outputTokens, totalTokens, inputTokenDetails, outputTokenDetails } = usage
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  return {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    ...inputTokenDetails.cacheReadTokens !== undefined && { cachedTokens: inputTokenDetails.cacheReadTokens },
    ...inputTokenDetails.cacheWriteTokens !== undefined && { cacheCreationTokens: inputTokenDetails.cacheWriteTokens },
    ...outputTokenDetails.reasoningTokens !== undefined && { reasoningTokens: outputTokenDetails.reasoningTokens },
    ...totalTokens !== undefined && { totalTokens }
  }
}
