import t from 'tap'
import { FaultPlan, faultyStore, memoryStore, STORE_OPERATIONS, type Store, wrapStore } from 'fastify-agents/stores'
import { type OpenStore, storeConformance } from 'fastify-agents/stores/conformance'

/** A memory store on a clock that the suite moves. */
function openMemory (wrap: (store: Store) => Store = (store) => store, inOrder = true): OpenStore {
  let now = 1_700_000_000_000
  const store = memoryStore({ now: () => now })
  return {
    store: wrap(store),
    peer: wrap(store),
    inOrder,
    advance: (ms) => { now += ms },
    close: () => store.close()
  }
}

await storeConformance(t, { name: 'memory', open: async () => openMemory() })

const repeatable = new Set(Object.entries(STORE_OPERATIONS).flatMap(([port, operations]) =>
  Object.entries(operations).flatMap(([name, kind]) => kind === 'repeatable' ? `${port}.${name}` : [])))

/** Every second acknowledgement of a repeatable operation is lost, some requests too; the caller repeats until it is answered. */
function losing (seed: number): (store: Store) => Store {
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

let seed = 0
await storeConformance(t, { name: 'memory behind lost acknowledgements', open: async () => openMemory(losing(++seed), false) })
