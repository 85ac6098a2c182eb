import t from 'tap'
import { memoryStore, type Store } from 'fastify-agents/stores'
import { type OpenStore, storeConformance } from 'fastify-agents/stores/conformance'
import { losing } from '../helpers/losing-store.ts'

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

let seed = 0
await storeConformance(t, { name: 'memory behind lost acknowledgements', open: async () => openMemory(losing(++seed), false) })
