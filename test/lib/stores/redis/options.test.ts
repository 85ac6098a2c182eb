import { Cluster, Redis } from 'ioredis'
import t from 'tap'
import { redisStore } from '../../../../lib/stores/redis/index.ts'

const lazy = { lazyConnect: true } as const

t.test('a client that the store can not work with is refused when the store is made', (t) => {
  const closed = new Redis(lazy)
  closed.disconnect()
  const nodes = [{ host: '127.0.0.1', port: 1 }]
  const clients: readonly unknown[] = [
    undefined, null, {}, 'redis://localhost', () => {},
    new Redis({ ...lazy, keyPrefix: 'x:' }), new Redis({ ...lazy, readOnly: true }), new Cluster(nodes, { ...lazy, scaleReads: 'slave' }), new Cluster(nodes, { ...lazy, keyPrefix: 'x:' })
  ]
  for (const client of clients) t.throws(() => redisStore({ client: client as Redis }), { code: 'AGT_ERR_OPTION_INVALID' })
  t.throws(() => redisStore({ client: closed }), { code: 'AGT_ERR_OPTION_INVALID', message: /closed/ })
  t.throws(() => redisStore(undefined as never), { code: 'AGT_ERR_OPTION_INVALID' })
  t.end()
})

t.test('options are checked, and named with what they were', async (t) => {
  const client = new Redis(lazy)
  for (const options of [
    { prefix: '' }, { prefix: 'a{b}' }, { prefix: 'x'.repeat(65) }, { prefix: 1 }, { endedTtlMs: 0 }, { idleTtlMs: 1_000 }, { idleTtlMs: 1.5 }, { maxPending: 0 }, { skewMs: 5 }
  ]) {
    const [[name, value] = []] = Object.entries(options)
    t.throws(() => redisStore({ client, ...options as object }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(`"${name}".*${typeof value === 'string' ? '' : value}`) })
  }
  for (const client of [new Redis(lazy), new Cluster([{ host: '127.0.0.1', port: 1 }], lazy)]) {
    const store = redisStore({ client, prefix: 'app:', endedTtlMs: 1, idleTtlMs: 60_000, maxPending: 1 })
    await store.close()
    t.equal(client.status, 'wait', 'nothing was connected')
    client.disconnect()
  }
})
