import { type AgentEventInit, type Pending } from '../../../lib/agent/index.ts'

/** What a task tells, in order, each thing once. */
export type TaskUpdate =
  /** An event of the task's agent. What it waits for is no event: see `waiting`. */
  | { readonly kind: 'event', readonly event: AgentEventInit }
  /** Some events are gone; `missed` where it is known how many. What is told next may lack its beginning. */
  | { readonly kind: 'gap', readonly reason: string, readonly missed?: number }
  /** The task waits for answers and takes them. `seq` is where to attach to see what comes of them. */
  | { readonly kind: 'waiting', readonly pending: readonly Pending[], readonly seq: number }
  /** Nothing follows. */
  | TaskEnd

/** How a task ended. `result` is its text, where the service told it. */
export type TaskEnd =
  | { readonly kind: 'end', readonly status: 'success', readonly result?: string }
  | { readonly kind: 'end', readonly status: 'error', readonly error: string, readonly code?: string }
  | { readonly kind: 'end', readonly status: 'cancelled' }
