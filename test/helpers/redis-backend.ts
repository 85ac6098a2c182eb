import { randomUUID } from 'node:crypto'
import { type RedisOptions } from 'ioredis'
import { FaultPlan, faultyStore, type OperationName, type Store, STORE_OPERATIONS, wrapStore } from 'fastify-agents/stores'
import { type OpenStore } from 'fastify-agents/stores/conformance'
import { redisStore } from 'fastify-agents/stores/redis'
import { type TestRedis } from './redis-server.ts'

/** How the stores of a backend are made. */
export interface RedisBackendOptions {
  readonly wrap?: (store: Store) => Store
  /** Whether appends arrive in the order in which they are made. @default true */
  readonly inOrder?: boolean
  readonly client?: RedisOptions
}

/** Two stores on one Redis, with clocks that the suite moves: what Redis says is the time is moved for scripts, and times to live run down. */
export function openRedis (redis: TestRedis, { wrap = (store) => store, inOrder = true, client: clientOptions }: RedisBackendOptions = {}): OpenStore {
  const prefix = `${randomUUID()}:`
  let skew = 0
  const closers: (() => Promise<void>)[] = []
  const make = (): Store => {
    const client = redis.anyClient(clientOptions)
    const store = redisStore({ client, prefix, skewMs: () => skew })
    closers.push(async () => {
      await store.close()
      redis.drop(client)
    })
    return wrap(store)
  }
  return {
    store: make(),
    peer: make(),
    inOrder,
    advance: async (ms) => {
      skew += ms
      await redis.expire(prefix, ms)
    },
    reopen: async () => {
      await closers[0]?.()
      return make()
    },
    close: async () => {
      for (const close of closers) await close()
      await redis.clear(prefix)
    }
  }
}

const repeatable = new Set(Object.entries(STORE_OPERATIONS).flatMap(([port, operations]) =>
  Object.entries(operations).flatMap(([name, kind]) => kind === 'repeatable' ? `${port}.${name}` : [])))

/** Every second acknowledgement of a repeatable operation is lost, some requests too; the caller repeats until it is answered. */
export function losing (seed: number): (store: Store) => Store {
  return (store) => {
    const plan = new FaultPlan({ seed, after: 0.5, before: 0.1, slow: 0.1, operations: [...repeatable] as OperationName[] })
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
