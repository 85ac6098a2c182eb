import { type Usage } from 'fastify-agents/agent'

/** Counts words for tokens: there is no tokenizer here. */
export function wordUsage (read: string, written: string): Usage {
  return { inputTokens: countWords(read), outputTokens: countWords(written) }
}

function countWords (text: string): number {
  return text.match(/\S+/g)?.length ?? 0
}
