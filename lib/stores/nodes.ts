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
 * Each method is idempotent. The binding is a fact of the run and goes with it; which runs a node has is an index that is verified on read.
 */
export interface Nodes {
  /** The node is alive for another `ms`. */
  beat (node: string, ms: number): Promise<void>

  /**
   * The run, once it waits, ends with this node and no other. Call it before the run is committed as waiting. Nothing is kept for a
   * run that is not there.
   */
  bind (node: string, key: RunKey): Promise<void>

  /** The run no longer depends on this node. */
  unbind (node: string, key: RunKey): Promise<void>

  /**
   * Waiting runs bound to a node that has not beaten in time (or never). Acquire the lease before ending one, so that only one reaper does.
   */
  orphans (query: OrphansQuery): Promise<readonly RunKey[]>
}
