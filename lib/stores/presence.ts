import type { RunKey } from './run-key.ts'

/** Which nodes hold subscribers of a run (R18). Entries run out by themselves; each method is idempotent and atomic on one run key. */
export interface Presence {
  /** The node has a subscriber of the run, for another `ms`. Nothing is kept for a run that is not there. */
  enter (key: RunKey, node: string, ms: number): Promise<void>

  /** The node has none any more. */
  leave (key: RunKey, node: string): Promise<void>

  /** The nodes that have one now, sorted. */
  nodes (key: RunKey): Promise<readonly string[]>
}
