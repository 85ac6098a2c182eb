import { type Redis } from 'ioredis'
import t from 'tap'
import { aLease, anInterrupt, events, expect, recordOf } from '../../../../lib/stores/conformance/harness.ts'
import { redisStore } from '../../../../lib/stores/redis/index.ts'
import { type Store } from '../../../../lib/stores/index.ts'
import { redisTests, type TestRedis } from '../../../helpers/redis-server.ts'

/** Commands by name, those that scripts call among them. */
type Counts = Readonly<Record<string, number>>

const owner = { id: 'ann' }
const protocol = 'fake'
const session = 's'
/** More by the environment, on a machine that has the time. */
const MANY = Number(process.env['FINISHED_RUNS'] ?? 20_000)

/** Finished runs of one session, so that whoever walked through them would be seen to. */
async function finish (store: Store, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, to - start) }, async (_, index) => {
      const createdAt = start + index
      const key = { owner, protocol, id: `old-${createdAt}` }
      await store.index.add({ key, clientId: 'c', session, createdAt })
      const { record } = await store.runs.create({ key, clientId: 'c', session, agent: 'a', state: 'running', epoch: 'e', createdAt, detail: {} }, aLease())
      await store.runs.update(key, expect(record), { state: 'completed' })
    }))
  }
}

async function countsOf ({ admin }: TestRedis): Promise<Counts> {
  const stats = String(await admin.info('commandstats'))
  return Object.fromEntries([...stats.matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]).filter(([name]) => name !== 'info' && name !== 'ping'))
}

/** What each operation of one run asks of Redis. */
async function costs (redis: TestRedis, client: Redis, store: Store, id: string, createdAt: number): Promise<Readonly<Record<string, Counts>>> {
  const found: Record<string, Counts> = {}
  const count = async <Result>(name: string, call: () => Promise<Result>): Promise<Result> => {
    const before = await countsOf(redis)
    const result = await call()
    // On the store's own connection, behind what nobody waits for: it belongs to this operation.
    await client.ping()
    found[name] = Object.fromEntries(Object.entries(await countsOf(redis)).map(([what, n]) => [what, n - (before[what] ?? 0)] as const).filter(([, n]) => n > 0))
    return result
  }
  const key = { owner, protocol, id }
  const input = { key, clientId: id, session, agent: 'a', state: 'running' as const, epoch: 'e', createdAt, detail: {} }
  await count('add', async () => { await store.index.add({ key, clientId: id, session, createdAt }) })
  const { record } = await count('create', async () => await store.runs.create(input, aLease()))
  await count('first append', async () => await store.log.append(key, 1, 1, events(1, 10)))
  await count('append', async () => await store.log.append(key, 1, 11, events(11, 11)))
  await count('renew', async () => await store.leases.renew(key, 1, 10_000))
  await count('saveFold', async () => await store.log.saveFold(key, 1, { seq: 11, state: '{}' }))
  await count('read', async () => await store.log.read(key, 5, 100))
  await count('get', async () => await store.runs.get(key))
  await count('beat', async () => { await store.nodes.beat('n', 10_000) })
  await count('bind', async () => { await store.nodes.bind('n', key) })
  const paused = await count('pause', async () => recordOf(await store.runs.commit(key, expect(record), { patch: { state: 'waiting' }, firstSeq: 12, events: events(12, 12), interrupts: [anInterrupt('i')] })))
  await count('open', async () => await store.interrupts.open(owner, protocol, session))
  await count('expired', async () => await store.leases.expired({ protocols: [protocol], limit: 50 }))
  await count('orphans', async () => await store.nodes.orphans({ protocols: [protocol], limit: 50 }))
  await count('last', async () => await store.index.last(owner, protocol, session))
  await count('find', async () => await store.index.find(owner, protocol, id))
  await count('list', async () => await store.index.list(owner, { limit: 5 }))
  await count('claim', async () => await store.interrupts.claim(key, { run: 'other', fence: 1 }, [{ id: 'i', decision: 1 }]))
  await count('enter', async () => await store.gates.enter(owner, session, { id, ms: 10_000 }))
  await count('leave', async () => await store.gates.leave(owner, session, id))
  await count('set', async () => { await store.kv.set({ owner, space: 's', key: id }, 1, 10_000) })
  await count('publish', async () => { await store.signals.publish({ kind: 'run', key }, 1) })
  await count('update', async () => await store.runs.update(key, expect(paused), { state: 'completed' }))
  await count('delete', async () => { await store.runs.delete(key) })
  return found
}

redisTests(t, { settings: [] })('no operation costs more with many finished runs than with few', async (t, redis) => {
  const client = redis.client()
  const store = redisStore({ client, endedTtlMs: 3_600_000 })
  t.teardown(() => store.close())
  await finish(store, 0, 100)
  for (const n of [1, 2]) await costs(redis, client, store, `first-${n}`, 10_000_000 + n)
  const few = await costs(redis, client, store, 'few', 10_000_010)
  await finish(store, 100, MANY)
  for (const n of [1, 2]) await costs(redis, client, store, `second-${n}`, 10_000_020 + n)
  const { add, open, ...many } = await costs(redis, client, store, 'many', 10_000_030)
  t.same({ ...many, add: few['add'], open: few['open'] }, few)
  t.ok((open?.['hget'] ?? 0) <= 6, 'looks at the runs of the session that have waited a moment ago, of which there were six')
  t.ok((add?.['zrem'] ?? 0) <= 200, 'what has run out is taken out of lists by those who add to them, a bounded number each')
  t.same(few['append'], { evalsha: 1, hmget: 1, xadd: 1, hset: 1 }, 'an append is one script: who owns it, the entry, where the log ends')
  t.same(few['publish'], { publish: 1 })
})

redisTests(t, { settings: [] })('what is left of runs runs out by itself', async (t, redis) => {
  const client = redis.client()
  const store = redisStore({ client })
  t.teardown(() => store.close())
  await finish(store, 0, 20)
  await costs(redis, client, store, 'new', 10_000_000)
  const keys = await redis.admin.keys('agt:*')
  const lasting = new Set<string | undefined>()
  for (const key of keys) if (await redis.admin.pttl(key) < 0) lasting.add(key.split(':')[1])
  t.same([...lasting].sort(), ['b', 'm', 'w'], `of ${keys.length} keys: hints, which are checked by those who read them`)
})
