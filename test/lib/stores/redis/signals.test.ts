import t, { type Test } from 'tap'
import { redisStore } from '../../../../lib/stores/redis/index.ts'
import { type JsonValue, type SignalChannel, type Store } from '../../../../lib/stores/index.ts'
import { aRun } from '../../../../lib/stores/conformance/harness.ts'
import { redisTests, type TestRedis } from '../../../helpers/redis-server.ts'

const test = redisTests(t, { settings: [] })

function storeOn (t: Test, redis: TestRedis): Store {
  const client = redis.anyClient()
  const store = redisStore({ client })
  t.teardown(async () => {
    await store.close()
    redis.drop(client)
  })
  return store
}

/** Connections that subscribe. */
async function subscribers (redis: TestRedis): Promise<number> {
  return String(await redis.admin.client('LIST', 'TYPE', 'PUBSUB')).split('\n').filter((line) => line !== '').length
}

test('a thousand channels are heard on one connection, each in order, and it ends with the store', async (t, redis) => {
  const [publisher, store] = [storeOn(t, redis), storeOn(t, redis)]
  const channels = Array.from({ length: 1_000 }, (): SignalChannel => ({ kind: 'run', key: aRun().key }))
  const heard = channels.map((): JsonValue[] => [])
  let left = channels.length * 3
  const all = new Promise<void>((resolve) => {
    for (const [index, channel] of channels.entries()) {
      store.signals.subscribe(channel, {
        message: (message) => {
          heard[index]?.push(message)
          if (--left === 0) resolve()
        }
      }).then(async () => { for (let n = 0; n < 3; n++) await publisher.signals.publish(channel, [index, n]) })
    }
  })
  await all
  t.same(heard, channels.map((_, index) => [[index, 0], [index, 1], [index, 2]]))
  t.equal(await subscribers(redis), 1)
  await store.close()
  while (await subscribers(redis) > 0);
  t.same(await redis.admin.pubsub('CHANNELS', '*'), [])
})

test('who listened is told that the connection was away, once it hears again', async (t, redis) => {
  const store = storeOn(t, redis)
  const channel = { kind: 'node', node: 'n' } as const
  const heard: JsonValue[] = []
  const listen = () => {
    let onReset = (): void => {}
    let onMessage = (): void => {}
    const reset = new Promise<void>((resolve) => { onReset = resolve })
    const message = new Promise<void>((resolve) => { onMessage = resolve })
    return { reset, message, handler: { message: (text: JsonValue) => { heard.push(text); onMessage() }, reset: onReset } }
  }
  const [one, two] = [listen(), listen()]
  const unsubscribe = await store.signals.subscribe(channel, one.handler)
  await store.signals.subscribe({ kind: 'node', node: 'm' }, two.handler)
  for (let round = 0; round < 2; round++) await redis.admin.client('KILL', 'TYPE', 'pubsub')
  await Promise.all([one.reset, two.reset])
  await store.signals.publish(channel, 'after')
  await one.message
  t.same(heard, ['after'])
  t.equal(await subscribers(redis), 1)
  unsubscribe()
  const late = listen()
  await store.signals.subscribe(channel, late.handler)
  await store.signals.publish(channel, 'late')
  await late.message
  t.same(heard, ['after', 'late'])
})

test('a connection that nobody needs is not made again', async (t, redis) => {
  const store = storeOn(t, redis)
  const channel = { kind: 'node', node: 'n' } as const
  const unsubscribe = await store.signals.subscribe(channel, { message: () => {} })
  t.equal(await subscribers(redis), 1)
  unsubscribe()
  await redis.admin.client('KILL', 'TYPE', 'pubsub')
  while (await subscribers(redis) > 0);
  const heard = new Promise((resolve) => { store.signals.subscribe(channel, { message: resolve }).then(() => store.signals.publish(channel, 1)) })
  t.equal(await heard, 1)
  t.equal(await subscribers(redis), 1)
})
