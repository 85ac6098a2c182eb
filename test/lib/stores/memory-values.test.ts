import t from 'tap'
import { EventList } from 'fastify-agents/bus'
import { isEnded, logEvent, memoryStore, ownerText, type RunState, runKeyText } from 'fastify-agents/stores'
import { start } from './bench.ts'

t.test('an array of events is the caller\'s to reuse, a block is kept as it is', async (t) => {
  const store = memoryStore()
  const { key } = await start(store)
  const batch = [{ seq: 1, data: 'a' }, { seq: 2, event: 'e', data: 'b', level: 1 }]
  await store.log.append(key, 1, 1, batch)
  batch.length = 0
  const block = EventList.blockOf(Array.from({ length: 20 }, (_, index) => ({ seq: 3 + index, data: `é ${index}` })))
  await store.log.append(key, 1, 3, block)
  const page = await store.log.read(key, 0, 4)
  t.strictSame(page, {
    oldest: 1,
    last: 22,
    events: [{ seq: 1, data: 'a' }, { seq: 2, event: 'e', data: 'b', level: 1 }, { seq: 3, data: 'é 0' }, { seq: 4, data: 'é 1' }]
  })
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

t.test('an event as it is kept has no member that is undefined', async (t) => {
  t.strictSame([logEvent(1, 'd'), logEvent(1, 'd', 'e'), logEvent(1, 'd', undefined, 0), logEvent(1, 'd', 'e', 0)], [
    { seq: 1, data: 'd' }, { seq: 1, event: 'e', data: 'd' }, { seq: 1, data: 'd', level: 0 }, { seq: 1, event: 'e', data: 'd', level: 0 }
  ])
})
