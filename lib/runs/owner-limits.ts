import { type RunIndex } from '../stores/index.ts'
import { type Gates } from './gate.ts'
import { Slots } from './slots.ts'
import { StoredBytes } from './stored-bytes.ts'

/** What one owner may have at once; what is left out is not limited. */
export interface OwnerLimits {
  /** Runs that are queued or under way, on all nodes that share the store. */
  readonly maxRuns?: number | undefined
  /** Rough bytes that the store keeps of inputs and logs. */
  readonly maxStoredBytes?: number | undefined
}

/** What keeps the limits that are set. */
export function ownerLimits ({ maxRuns, maxStoredBytes }: OwnerLimits = {}, gates: Gates, index: RunIndex): { readonly slots: Slots | undefined, readonly storedBytes: StoredBytes | undefined } {
  return {
    slots: maxRuns === undefined ? undefined : new Slots({ gates, maxRuns }),
    storedBytes: maxStoredBytes === undefined ? undefined : new StoredBytes({ index, maxStoredBytes })
  }
}
