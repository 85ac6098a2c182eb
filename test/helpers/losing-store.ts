import { FaultPlan, faultyStore, STORE_OPERATIONS, type Store, wrapStore } from '../../lib/stores/index.ts'

const repeatable = new Set(Object.entries(STORE_OPERATIONS).flatMap(([port, operations]) =>
  Object.entries(operations).flatMap(([name, kind]) => kind === 'repeatable' ? `${port}.${name}` : [])))

/** Every second acknowledgement of a repeatable operation is lost, some requests too; the caller repeats until it is answered. */
export function losing (seed: number): (store: Store) => Store {
  return (store) => {
    const plan = new FaultPlan({ seed, after: 0.5, before: 0.1, slow: 0.1, operations: [...repeatable] as never })
    return wrapStore(faultyStore(store, plan), async (operation, call) => {
      for (;;) {
        try {
          return await call()
        } catch (error) {
          if (!repeatable.has(operation) || (error as { code?: string }).code !== 'AGT_ERR_STORE_UNAVAILABLE') throw error
        }
      }
    })
  }
}
