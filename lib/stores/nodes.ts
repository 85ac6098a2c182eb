import type { RunKey } from './run-key.ts'

/** Which orphans to list. */
export interface OrphansQuery {
  /** Only runs of these protocols: a node reaps what it serves (R13). */
  readonly protocols: readonly string[]
  /** At most this many keys. */
  readonly limit: number
}

/**
 * Heartbeats of nodes, and the waiting runs that live and die with their node because their agent can not be rebuilt elsewhere (R14).
 * Each method is idempotent. `bind` is called before the run is committed as waiting and again after each resume.
 */
export interface Nodes {
  /** The node is alive for another `ms`. */
  beat (node: string, ms: number): Promise<void>

  /** The run, once it waits, ends with the node. */
  bind (node: string, key: RunKey): Promise<void>

  /** The run no longer depends on the node. */
  unbind (node: string, key: RunKey): Promise<void>

  /**
   * Waiting runs bound to a node that has not beaten in time (or never). Entries are verified against the record: it waits and this node was its
   * last owner. Acquire the lease before ending one, so that only one reaper does.
   */
  orphans (query: OrphansQuery): Promise<readonly RunKey[]>
}
