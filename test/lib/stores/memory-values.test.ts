import t from 'tap'
import { memoryStore, ownerText, runKeyText, isEnded, type RunState } from 'fastify-agents/stores'
import { start } from './bench.ts'

t.test('keeps the very events it was given, in arrays of its own', async (t) => {
  const store = memoryStore()
  const { key } = await start(store)
  const batch = [{ seq: 1, data: 'a' }, { seq: 2, data: 'b' }]
  const [first, second] = batch
  await store.log.append(key, 1, 1, batch)
  batch.length = 0
  const page = await store.log.read(key, 0, 10)
  t.equal(page?.events[0], first)
  t.equal(page?.events[1], second)
  await store.close()
})

t.test('tells a change without an op from a rival\'s only by the version', async (t) => {
  const store = memoryStore()
  const { key } = await start(store)
  t.equal((await store.runs.update(key, { version: 1 }, { fingerprint: 'x' })).kind, 'ok')
  t.equal((await store.runs.update(key, { version: 1 }, { fingerprint: 'x' })).kind, 'stale')
  await store.close()
})

t.test('gives out frozen records, the same object until they change', async (t) => {
  const store = memoryStore()
  const { key } = await start(store, { detail: { list: [{}] } })
  const record = await store.runs.get(key)
  t.equal(await store.runs.get(key), record)
  t.throws(() => { (record as { session: string }).session = 'x' }, TypeError)
  t.throws(() => { (record?.detail as { list: unknown[] }).list.push(1) }, TypeError)
  await store.runs.update(key, { version: 1 }, { detail: { list: [] } })
  t.throws(() => { ((record as NonNullable<typeof record>).firstSeqByFence as unknown[]).push(1) }, TypeError)
  await store.close()
})

t.test('delivers a message as it was when it was published, and only to who still listens', async (t) => {
  const store = memoryStore()
  const channel = { kind: 'node', node: 'n' } as const
  const got: unknown[] = []
  await store.signals.subscribe(channel, { message: (message) => { got.push(['first', message]) } })
  const stop = await store.signals.subscribe(channel, { message: () => { got.push('never') } })
  const arrived = new Promise<void>((resolve) => {
    store.signals.subscribe(channel, { message: (message) => { got.push(['second', message]); resolve() } }).catch(t.error)
  })
  const message = { list: [1] }
  const published = store.signals.publish(channel, message)
  stop()
  message.list.push(2)
  await published
  await arrived
  t.same(got, [['first', { list: [1] }], ['second', { list: [1] }]])
  t.throws(() => (got[0] as [string, { list: number[] }])[1].list.push(3), TypeError, 'shared among subscribers, so frozen')
  await store.close()
  await store.signals.publish(channel, 'closed')
  t.equal(got.length, 2)
})

t.test('tells keys apart and ended states from others', async (t) => {
  t.equal(ownerText({}), '[null,null]')
  t.equal(ownerText({ tenant: 'null', id: '' }), '["null",""]')
  t.equal(runKeyText({ owner: { id: 'a' }, protocol: 'p', id: '"' }), '[null,"a","p","\\""]')
  const states: readonly RunState[] = ['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'lost']
  t.same(states.filter(isEnded), ['completed', 'failed', 'cancelled', 'lost'])
})
