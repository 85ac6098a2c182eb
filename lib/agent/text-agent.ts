import type { Agent, AgentCapabilities } from './agent.ts'
import type { RuntimeContext } from './context.ts'
import type { AgentEventInit } from './events.ts'
import type { AgentInput } from './input.ts'

/** Answers with a text, whole or in pieces. */
export type Reply = (input: AgentInput, context: RuntimeContext) =>
  string | Promise<string> | AsyncIterable<string> | Iterable<string> | Promise<AsyncIterable<string> | Iterable<string>>

/** What clients are told of a {@link textAgent}. */
export interface TextAgentOptions {
  /** @default the function's name, or `agent` */
  readonly name?: string
  readonly description?: string
  readonly capabilities?: AgentCapabilities
}

/** Makes an agent of a function that returns its answer or yields it in pieces. */
export function textAgent (reply: Reply, options: TextAgentOptions = {}): Agent {
  return {
    name: options.name ?? (reply.name || 'agent'),
    ...options.description !== undefined && { description: options.description },
    ...options.capabilities !== undefined && { capabilities: options.capabilities },
    stream: (input, context) => streamText(reply, input, context)
  }
}

async function * streamText (reply: Reply, input: AgentInput, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
  const text = await reply(input, context)
  yield { type: 'TEXT_BLOCK_START' }
  if (typeof text === 'string') yield { type: 'TEXT_BLOCK_DELTA', delta: text }
  else for await (const delta of text) yield { type: 'TEXT_BLOCK_DELTA', delta }
  yield { type: 'TEXT_BLOCK_END' }
}
