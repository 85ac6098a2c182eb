import type { AgentEventInit } from './events.ts'
import type { Msg } from './message.ts'
import { Normaliser } from './normaliser.ts'
import type { Pending } from './pending.ts'
import type { Usage } from './usage.ts'

/** Events in memory; they need not be well formed. */
export type Events = Iterable<AgentEventInit>

/**
 * The root's message of a stream: the result that the agent gave, or what its blocks, calls and results add up to.
 * Children are left out.
 */
export function accumulate (events: Events): Msg {
  return replay(events).message
}

/**
 * Tokens of root and children, each counted once: model calls count, the totals of a source (`AGENT_RESULT`, `CUSTOM usage`)
 * only when it reported no call. Undefined when nobody reported any.
 */
export function usageOf (events: Events): Usage | undefined {
  return replay(events).usage
}

/** What the root waits for at the end of the events. */
export function pendingOf (events: Events): readonly Pending[] {
  return replay(events).pending
}

function replay (events: Events): Normaliser {
  const normaliser = new Normaliser({ agentName: '', sessionId: '' })
  for (const event of events) {
    // The end says nothing about message, usage and pending; what came behind it is not part of the run.
    normaliser.push(event, discard)
  }
  return normaliser
}

function discard (): void {}
