import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test } from 'tap'
import { memoryStore, type Store, StoreUnavailableError, wrapStore } from '../../lib/stores/index.ts'
import { lmdbStore } from '../../lib/stores/lmdb/index.ts'
import { redisStore } from '../../lib/stores/redis/index.ts'
import { redisTests, type TestRedis } from './redis-server.ts'

/** Where runs are kept, for processes that follow each other. */
export interface StorePlace {
  /** A store on what is kept; the one before was closed or cut. */
  open (): Promise<CuttableStore>
  /** Lets time go by, for leases and times to live. */
  advance (ms: number): Promise<void>
  /** Removes everything. */
  remove (): Promise<void>
}

/** A store whose process may end in one moment. */
export interface CuttableStore extends Store {
  /** Nothing reaches the store any more, and nothing comes from it. */
  cut (): Promise<void>
}

/** What a test does on every backend; it is told which one it is. */
export type StoreTest = (t: Test, makePlace: () => Promise<StorePlace>, store: 'memory' | 'lmdb' | 'redis') => Promise<void>

/** Registers a test for every backend. Where there is no Redis, its row is skipped by name. */
export function onEachStore (t: Test, name: string, body: StoreTest): void {
  t.test(`${name} (memory)`, async (t) => { await body(t, async () => memoryPlace(), 'memory') })
  t.test(`${name} (lmdb)`, async (t) => { await body(t, lmdbPlace, 'lmdb') })
  redisTests(t)(`${name} (redis)`, async (t, redis) => { await body(t, async () => redisPlace(redis), 'redis') })
}

/** A place in this process. */
export function memoryPlace (): StorePlace {
  let skew = 0
  const store = memoryStore({ now: () => Date.now() + skew, maxRuns: 200_000 })
  return {
    // It outlives the engines of a test, as another process would.
    open: async () => ({ ...cuttable(store, async () => {}), isVolatile: false }),
    advance: async (ms) => { skew += ms },
    remove: () => store.close()
  }
}

async function lmdbPlace (): Promise<StorePlace> {
  const parent = await mkdtemp(join(tmpdir(), 'place-'))
  let skew = 0
  return {
    open: async () => {
      const store = await lmdbStore({ path: join(parent, 'store'), now: () => Date.now() + skew })
      return cuttable(store, () => store.close())
    },
    advance: async (ms) => { skew += ms },
    remove: () => rm(parent, { recursive: true, force: true })
  }
}

function redisPlace (redis: TestRedis): StorePlace {
  const prefix = `${randomUUID()}:`
  let skew = 0
  return {
    open: async () => {
      const client = redis.anyClient()
      const store = redisStore({ client, prefix, skewMs: () => skew })
      return cuttable(store, async () => {
        await store.close()
        redis.drop(client)
      })
    },
    advance: async (ms) => {
      skew += ms
      await redis.expire(prefix, ms)
    },
    remove: () => redis.clear(prefix)
  }
}

function cuttable (store: Store, close: () => Promise<void>): CuttableStore {
  let isCut = false
  let closed: Promise<void> | undefined
  const wrapped = wrapStore(store, async (operation, call) => {
    if (isCut) throw new StoreUnavailableError(operation)
    const result = await call()
    // It was done, and nobody hears of it.
    if (isCut) throw new StoreUnavailableError(operation)
    return result
  })
  return {
    ...wrapped,
    close: async () => { await (closed ??= close()) },
    cut: async () => {
      isCut = true
      await (closed ??= close())
    }
  }
}
