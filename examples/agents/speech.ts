import { setTimeout as wait } from 'node:timers/promises'
import { type AgentEventInit } from 'fastify-agents/agent'

/** Says a text word by word, as a model does; ends at once when the signal fires. */
export async function * say (text: string, options: SayOptions): AsyncGenerator<AgentEventInit> {
  const block = { replyId: options.replyId, blockId: options.blockId ?? 'text' }
  const kind = options.isThought === true ? 'THINKING_BLOCK' : 'TEXT_BLOCK'
  yield { type: `${kind}_START`, ...block }
  for (const delta of text.match(/\s*\S+\s*/g) ?? []) {
    if (options.wordMs > 0) await wait(options.wordMs, undefined, { signal: options.signal })
    yield { type: `${kind}_DELTA`, ...block, delta }
  }
  yield { type: `${kind}_END`, ...block }
}

export interface SayOptions {
  readonly replyId: string
  readonly blockId?: string
  readonly isThought?: boolean
  /** Milliseconds between two words; 0 for none. */
  readonly wordMs: number
  readonly signal: AbortSignal
}
