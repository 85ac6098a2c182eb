import t from 'tap'
import { memoryStore, type LogPage } from 'fastify-agents/stores'
import { Clock, finish, interrupt, present, start } from './bench.ts'

t.test('drops the run that ended longest ago to make room, and refuses when none has ended', async (t) => {
  const store = memoryStore({ maxRuns: 3 })
  const runs = [await start(store, { id: 'a' }), await start(store, { id: 'b' }), await start(store, { id: 'c' })]
  const keys = runs.map(({ key }) => key)
  await t.rejects(start(store, { id: 'd' }), { code: 'AGT_ERR_STORE_FULL', statusCode: 503 })
  for (const index of [1, 0]) await finish(store, runs[index] as typeof runs[number])
  await start(store, { id: 'd' })
  t.same(await present(store, keys), ['a', 'c'])
  t.same((await store.index.list({}, { limit: 10 })).runs.map(({ key }) => key.id), ['d', 'c', 'a'].sort().reverse())
  await start(store, { id: 'e' })
  t.same(await present(store, keys), ['c'])
  await t.rejects(start(store, { id: 'f' }), { code: 'AGT_ERR_STORE_FULL' })
  await store.close()
})

t.test('trims a log to its hard limit whatever its own limits and floor say', async (t) => {
  const store = memoryStore({ maxLogBytes: 1_000 })
  const { key } = await start(store)
  for (let seq = 1; seq <= 20; seq++) await store.log.append(key, 1, seq, [{ seq, data: 'x'.repeat(136) }], { floor: 0 })
  t.same((await store.log.read(key, 0, 100))?.events.map(({ seq }) => seq), [16, 17, 18, 19, 20])
  await store.log.append(key, 1, 21, [{ seq: 21, data: 'x'.repeat(5_000) }], { floor: 0 })
  t.same((await store.log.read(key, 0, 100))?.events.map(({ seq }) => seq), [21], 'the newest append always stays')
  await store.close()
})

t.test('makes room among all logs: ended runs go first, then the appending run keeps its newest append', async (t) => {
  const store = memoryStore({ maxTotalLogBytes: 3_000 })
  const [old, young, live] = [await start(store), await start(store), await start(store)]
  const append = (key: typeof old.key, seq: number) => store.log.append(key, 1, seq, [{ seq, data: 'x'.repeat(936) }])
  await append(old.key, 1)
  await append(young.key, 1)
  await finish(store, old)
  await finish(store, young)
  await append(live.key, 1)
  t.same(await present(store, [old.key, young.key, live.key]), [old, young, live].map(({ key }) => key.id))
  await append(live.key, 2)
  t.same(await present(store, [old.key, young.key, live.key]), [young, live].map(({ key }) => key.id))
  await append(live.key, 3)
  await append(live.key, 4)
  t.same(await present(store, [young.key, live.key]), [live.key.id])
  t.same((await store.log.read(live.key, 0, 10))?.events.map(({ seq }) => seq), [4])
  await append(live.key, 5)
  t.same((await store.log.read(live.key, 0, 10))?.events.map(({ seq }) => seq), [4, 5])
  t.same(await append(live.key, 3), { kind: 'ok', last: 5 })
  await store.close()
})

t.test('counts the bytes of dropped runs back', async (t) => {
  const store = memoryStore({ maxTotalLogBytes: 2_000 })
  for (let i = 0; i < 10; i++) {
    const { key } = await start(store)
    await store.log.append(key, 1, 1, [{ seq: 1, data: 'x'.repeat(900) }])
    await store.log.append(key, 1, 2, [{ seq: 2, data: 'x'.repeat(900) }])
    t.same((await store.log.read(key, 0, 10))?.events.map(({ seq }) => seq), [1, 2])
    await store.runs.delete(key)
  }
  await store.close()
})

t.test('keeps a log of many small appends trimmed without growing', async (t) => {
  const store = memoryStore()
  const { key } = await start(store)
  for (let seq = 1; seq <= 1_000; seq++) await store.log.append(key, 1, seq, [{ seq, data: 'x' }], { maxEvents: 10 })
  const page = await store.log.read(key, 0, 100) as LogPage
  t.same([page.oldest, page.last, page.events.map(({ seq }) => seq)], [991, 1_000, [991, 992, 993, 994, 995, 996, 997, 998, 999, 1_000]])
  await store.close()
})

t.test('refuses interrupts beyond the limit, with nothing of their barrier written', async (t) => {
  const store = memoryStore({ maxInterrupts: 2 })
  const first = await start(store)
  const second = await start(store)
  const commit = ({ key, version }: typeof first, ids: readonly string[], op: string) => store.runs.commit(key, { version, fence: 1, op }, {
    patch: { state: 'waiting' }, firstSeq: 1, events: [{ seq: 1, data: 'x' }], interrupts: ids.map(interrupt)
  })
  t.equal((await commit(first, ['a', 'b', 'b'], '1')).kind, 'ok')
  await t.rejects(commit(second, ['a'], '2'), { code: 'AGT_ERR_STORE_FULL' })
  t.same(await store.runs.get(second.key), second)
  t.equal((await store.log.read(second.key, 0, 1))?.last, 0)
  await store.runs.delete(first.key)
  t.equal((await commit(second, ['a', 'b'], '3')).kind, 'ok')
  await store.close()
})

t.test('refuses tickets beyond the limit, counting those that ran out back', async (t) => {
  const clock = new Clock()
  const store = memoryStore({ maxTickets: 2, now: clock.now })
  await store.gates.enter({}, 's', { id: 'a', ms: 1_000 })
  await store.gates.enter({}, 's', { id: 'b', ms: 1_000 })
  await t.rejects(store.gates.enter({}, 'other', { id: 'a', ms: 1_000 }), { code: 'AGT_ERR_STORE_FULL' })
  t.equal((await store.gates.enter({}, 's', { id: 'a', ms: 1_000 })).kind, 'in', 'one that is in may stay')
  clock.time += 1_000
  t.equal((await store.gates.enter({}, 's', { id: 'c', ms: 1_000 })).kind, 'in')
  await store.gates.leave({}, 's', 'c')
  await store.gates.enter({}, 'x', { id: 'a', ms: 1_000 })
  await store.gates.enter({}, 'y', { id: 'a', ms: 1_000 })
  await store.close()
})

t.test('drops the small value written longest ago to make room', async (t) => {
  const store = memoryStore({ maxKv: 2 })
  const key = (name: string) => ({ owner: {}, space: 's', key: name })
  await store.kv.set(key('a'), 1, 1_000)
  await store.kv.set(key('b'), 2, 1_000)
  await store.kv.set(key('a'), 3, 1_000)
  await store.kv.set(key('c'), 4, 1_000)
  t.same([await store.kv.get(key('a')), await store.kv.get(key('b')), await store.kv.get(key('c'))], [3, undefined, 4])
  await store.close()
})

t.test('bounds index entries that no record followed', async (t) => {
  const clock = new Clock()
  const store = memoryStore({ maxRuns: 2, now: clock.now })
  const entry = (id: string) => ({ key: { owner: {}, protocol: 'fake', id }, clientId: id, session: 's', createdAt: 1 })
  for (const id of ['a', 'b', 'c', 'd', 'e']) await store.index.add(entry(id))
  const record = await start(store, { id: 'f' })
  await start(store, { id: 'g' })
  await store.index.add(entry('h'))
  await store.index.add(entry('i'))
  await store.index.add(entry('j'))
  t.same((await store.index.list({}, { limit: 10 })).runs.map(({ key }) => key.id).sort(), ['f', 'g'])
  t.same(await store.index.find({}, 'fake', 'f'), record)
  await store.close()
})

t.test('looks at a thousand entries at most for a page, and says where it goes on', async (t) => {
  const store = memoryStore()
  await start(store, { id: 'wanted', createdAt: 0, session: 'rare' })
  for (let i = 1; i <= 2_100; i++) await start(store, { id: `r${i}`, createdAt: i })
  const sizes: number[] = []
  let cursor: string | undefined
  do {
    const page = await store.index.list({}, { session: 'rare', limit: 10, ...cursor !== undefined && { cursor } })
    sizes.push(page.runs.length)
    cursor = page.cursor
  } while (cursor !== undefined)
  t.same(sizes, [0, 0, 1])
  await store.close()
})

t.test('names the option that can not be used', async (t) => {
  for (const [name, value] of Object.entries({
    maxRuns: 0, maxLogBytes: -1, maxTotalLogBytes: 1.5, endedTtlMs: NaN, maxInterrupts: '5', maxTickets: null, maxKv: 0, sweepMs: 9, now: 5
  })) {
    t.throws(() => memoryStore({ [name]: value }), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(`"${name}"`) })
  }
})
