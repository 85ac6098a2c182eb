import type { AgentEventInit } from './events.ts'

/**
 * Gives a child's events the path of the child; a grandchild's path goes behind it: `outer/inner` (agent-events 8, row 6).
 */
export async function * forward (child: AsyncIterable<AgentEventInit>, source: string): AsyncGenerator<AgentEventInit, void, undefined> {
  for await (const event of child) yield withSource(event, source)
}

/** One event of a child, with its path. */
export function withSource<T extends AgentEventInit> (event: T, source: string): T {
  return { ...event, source: event.source ? `${source}/${event.source}` : source }
}
