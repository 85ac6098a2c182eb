// Where the example keeps what it has, by the environment: in memory, in a directory (DATA_DIR), or in a Redis that other servers share (REDIS_URL).
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Store } from 'fastify-agents/stores'
import { lmdbStore } from 'fastify-agents/stores/lmdb'
import { redisStore } from 'fastify-agents/stores/redis'
import { Redis } from 'ioredis'

export interface Storage {
  /** Runs, logs and approvals; absent: in memory. Closed with the server. */
  readonly store: Store | undefined
  /** What the agents write. */
  readonly folder: string
  /** The files of tasks; absent: in a temporary directory. */
  readonly tasksDir: string | undefined
}

/** Opens it. Throws with a sentence for the user. */
export async function openStorage ({ DATA_DIR, REDIS_URL, FILES_DIR }: NodeJS.ProcessEnv): Promise<Storage> {
  const dataDir = DATA_DIR === '' ? undefined : DATA_DIR
  const folder = FILES_DIR ?? (dataDir === undefined ? await mkdtemp(join(tmpdir(), 'fastify-agents-')) : join(dataDir, 'files'))
  const tasksDir = dataDir === undefined ? undefined : join(dataDir, 'tasks')
  if (REDIS_URL !== undefined && REDIS_URL !== '') return { store: await openRedis(REDIS_URL), folder, tasksDir }
  return { store: dataDir === undefined ? undefined : await lmdbStore({ path: join(dataDir, 'runs') }), folder, tasksDir }
}

async function openRedis (url: string): Promise<Store> {
  // The engine has deadlines of its own; what waits is not given up while Redis restarts.
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null })
  client.on('error', () => {}) // each call says so itself
  try {
    await client.connect()
  } catch {
    client.disconnect()
    throw new Error(`No Redis answers at the address in REDIS_URL (${new URL(url).host}). Start one, or unset REDIS_URL.`)
  }
  const store = redisStore({ client })
  return {
    ...store,
    async close () {
      await store.close()
      client.disconnect()
    }
  }
}
