import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { lmdbStore } from 'fastify-agents/stores/lmdb'
import { type Store } from 'fastify-agents/stores'
import { type OpenStore, storeConformance } from 'fastify-agents/stores/conformance'
import { losing } from '../helpers/losing-store.ts'

/** A store in a directory of its own, on a clock that the suite moves. */
async function openLmdb (wrap: (store: Store) => Store = (store) => store, inOrder = true): Promise<OpenStore> {
  const path = await mkdtemp(join(tmpdir(), 'lmdb-conformance-'))
  let now = 1_700_000_000_000
  const open = async () => await lmdbStore({ path, now: () => now })
  let store = await open()
  return {
    store: wrap(store),
    peer: wrap(store),
    inOrder,
    advance: (ms) => { now += ms },
    async reopen () {
      await store.close()
      store = await open()
      return wrap(store)
    },
    async close () {
      await store.close()
      await rm(path, { recursive: true })
    }
  }
}

await storeConformance(t, { name: 'LMDB', open: async () => await openLmdb() })

let seed = 0
await storeConformance(t, { name: 'LMDB behind lost acknowledgements', open: async () => await openLmdb(losing(++seed), false) })
