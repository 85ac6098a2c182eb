import type { RuntimeContext } from './context.ts'
import type { AgentEventInit } from './events.ts'
import type { AgentInput } from './input.ts'

/** What an agent can do; each absent member means no, `inputMedia` absent means text only. */
export interface AgentCapabilities {
  /** Continues a paused run from input and decisions alone, also in another process. */
  readonly resume?: boolean
  /** Calls the request's tools and pauses for their results. */
  readonly clientTools?: boolean
  /** Honours `AgentInput.output`. */
  readonly structuredOutput?: boolean
  /** Media types of message content it understands, `image/*` for instance. */
  readonly inputMedia?: readonly string[]
  /** Asks `context.permissions` before each tool execution. */
  readonly denyRules?: boolean
  /** Starting the same input again after a crash is harmless. */
  readonly restartable?: boolean
}

/**
 * Anything that answers with events (agent-events 9). A failure is a throw, a cancellation comes by `context.signal`, and
 * the events need neither ids nor a perfect order: {@link Normaliser} repairs what is missing.
 */
export interface Agent {
  /** Name shown to clients. */
  readonly name: string
  /** One sentence for clients and for a parent agent that uses it as a tool. */
  readonly description?: string
  readonly capabilities?: AgentCapabilities
  /** Runs once. The iterable is iterated once; its iterator's `return()` is called when the run is abandoned. */
  stream (input: AgentInput, context: RuntimeContext): AsyncIterable<AgentEventInit>
  /** Called at the end of its run for an instance that a factory made; never for one passed in. */
  close?(): void | Promise<void>
}
