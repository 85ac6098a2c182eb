import { StoreUnavailableError } from '../errors.ts'
import type { Store } from '../store.ts'
import { wrapStore } from '../wrap-store.ts'
import type { FaultPlan } from './fault-plan.ts'

/**
 * A store that is slow, fails, or loses acknowledgements as its plan says: for tests of whatever stands on a store. Injected failures are
 * `AGT_ERR_STORE_UNAVAILABLE`. The wrapped store stays the caller's.
 */
export function faultyStore (store: Store, plan: FaultPlan): Store {
  return wrapStore(store, async (operation, call) => {
    const faults = plan.next(operation)
    await turns(faults.slow)
    for (const hold of faults.holdsBefore) await hold()
    if (faults.failsBefore) throw new StoreUnavailableError(operation)
    const result = await call()
    await turns(faults.slow)
    for (const hold of faults.holdsAfter) await hold()
    if (faults.failsAfter) throw new StoreUnavailableError(operation)
    return result
  })
}

/** Lets turns of the event loop pass. None: goes on in the same one. */
async function turns (count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}
