import { once } from 'node:events'
import { type Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { redisStore, type RedisStoreOptions } from '../../../../lib/stores/redis/index.ts'
import { type Store, withDeadline } from '../../../../lib/stores/index.ts'
import { aLease, aRun, codeOf, events, LEASE_MS, started } from '../../../../lib/stores/conformance/harness.ts'
import { redisTests, type TestRedis } from '../../../helpers/redis-server.ts'

const test = redisTests(t, { settings: ['--appendonly', 'yes'] })

function storeOn (t: Test, redis: TestRedis, options: Partial<RedisStoreOptions> & { readonly client?: Redis } = {}): { readonly store: Store, readonly client: Redis } {
  const client = options.client ?? redis.client({ retryStrategy: () => 20 })
  const store = redisStore({ ...options, client })
  t.teardown(async () => {
    await store.close()
    redis.drop(client)
  })
  return { store, client }
}

/** Commands that the client keeps for later. */
function queued (client: Redis): number {
  return (client as unknown as { readonly offlineQueue: { readonly length: number } }).offlineQueue.length // ioredis' own
}

test('calls to a server that is gone end in time, and what waits for it has a limit', async (t, redis) => {
  const { store, client } = storeOn(t, redis, { maxPending: 10 })
  const { key } = await started(store)
  const bound = withDeadline(store, 50)
  const closed = once(client, 'close')
  await redis.kill()
  await closed
  const calls = await Promise.all(Array.from({ length: 40 }, (_, n) => codeOf(n % 2 === 0 ? bound.runs.get(key) : bound.log.append(key, 1, 1, events(1, 1)))))
  t.same(new Set(calls), new Set(['AGT_ERR_STORE_UNAVAILABLE']))
  t.equal(queued(client), 10)
  t.equal(await codeOf(store.kv.get({ owner: {}, space: 's', key: 'k' })), 'AGT_ERR_STORE_UNAVAILABLE', 'at once, without a deadline')
  await redis.start()
  // Answered in order: whatever waited has been told.
  await client.ping()
  t.equal(queued(client), 0)
  t.equal((await store.runs.get(key))?.state, 'running')
  t.same(await store.log.append(key, 1, 1, events(1, 1)), { kind: 'ok', last: 1 }, 'what was given up may have taken effect, and is not repeated')
})

test('calls to a server that hangs end in time, and it is used again when it goes on', async (t, redis) => {
  const { store, client } = storeOn(t, redis, { maxPending: 10 })
  const { key } = await started(store)
  const bound = withDeadline(store, 50)
  redis.signal('SIGSTOP')
  const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(bound.runs.get(key))))
  redis.signal('SIGCONT')
  t.same(new Set(codes), new Set(['AGT_ERR_STORE_UNAVAILABLE']))
  await client.ping()
  t.equal((await store.runs.get(key))?.key.id, key.id)
})

test('a client that keeps nothing for later fails at once, and works when it is connected', async (t, redis) => {
  const { store, client } = storeOn(t, redis, { client: redis.client({ enableOfflineQueue: false, maxRetriesPerRequest: null, retryStrategy: () => 20 }) })
  t.equal(await codeOf(store.runs.get(aRun().key)), 'AGT_ERR_STORE_UNAVAILABLE')
  await once(client, 'ready')
  t.equal(await store.runs.get(aRun().key), undefined)
})

test('a store is closed at once with its server gone, and leaves the client to who passed it in', async (t, redis) => {
  const { store, client } = storeOn(t, redis)
  const unsubscribe = await store.signals.subscribe({ kind: 'node', node: 'n' }, { message: () => {} })
  const closed = once(client, 'close')
  await redis.kill()
  await closed
  await store.close()
  await store.close()
  unsubscribe()
  t.not(client.status, 'end')
  t.equal(client.listenerCount('error'), 0)
  t.equal(await codeOf(store.signals.subscribe({ kind: 'node', node: 'n' }, { message: () => {} })), 'AGT_ERR_STORE_UNAVAILABLE')
  await redis.start()
  t.equal(await client.ping(), 'PONG')
})

test('nobody can subscribe at a server that is gone, and can when it is back', async (t, redis) => {
  const { store, client } = storeOn(t, redis)
  await client.ping()
  await redis.kill()
  const channel = { kind: 'node', node: 'n' } as const
  t.equal(await codeOf(store.signals.subscribe(channel, { message: () => {} })), 'AGT_ERR_STORE_UNAVAILABLE')
  await redis.start()
  const heard = new Promise((resolve) => { store.signals.subscribe(channel, { message: resolve }).then(() => store.signals.publish(channel, 1)) })
  t.equal(await heard, 1)
})

test('scripts that the server has forgotten are sent again', async (t, redis) => {
  const { store } = storeOn(t, redis)
  const { key } = await started(store)
  t.same(await store.log.append(key, 1, 1, events(1, 1)), { kind: 'ok', last: 1 })
  await redis.admin.script('FLUSH')
  t.same(await store.log.append(key, 1, 2, events(2, 2)), { kind: 'ok', last: 2 })
  t.same(await store.leases.renew(key, 1, LEASE_MS), { kind: 'ok' })
  await redis.admin.script('FLUSH')
  const results = await Promise.all([3, 4, 5].map((seq) => store.log.append(key, 1, seq, events(seq, seq))))
  t.same(results.map((result) => 'last' in result && result.last), [3, 4, 5], 'in order')
  await redis.kill()
  await redis.start()
  t.same(await store.log.append(key, 1, 6, events(6, 6)), { kind: 'ok', last: 6 })
})

test('a request that comes after its lease would have run out takes nothing', async (t, redis) => {
  let skew = 0
  const { store } = storeOn(t, redis, { skewMs: () => (skew += LEASE_MS) })
  const run = aRun()
  t.equal(await codeOf(store.runs.create(run, aLease())), 'AGT_ERR_STORE_UNAVAILABLE')
  t.equal(await store.runs.get(run.key), undefined)
})
