import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { aLease, aRun, codeOf, events, expect, started } from '../../../../lib/stores/conformance/harness.ts'
import { lmdbStore } from '../../../../lib/stores/lmdb/index.ts'
import { resolveLmdbOptions } from '../../../../lib/stores/lmdb/options.ts'
import { openDirectory } from '../../../../lib/stores/lmdb/data-directory.ts'
import { storeOn } from '../../../../lib/stores/lmdb/store-on.ts'
import { dataDir, openLmdb } from '../../../helpers/data-dir.ts'

const large = (seq: number, size: number) => [{ seq, data: 'x'.repeat(size) }]

t.test('the runs that ended longest ago make room; where none has ended, starts and appends are refused', async (t) => {
  let now = 1_000
  const store = await openLmdb(t, { maxBytes: 100_000, now: () => now })
  const old: string[] = []
  for (let n = 0; n < 3; n++) {
    const record = await started(store)
    await store.log.append(record.key, 1, 1, large(1, 25_000))
    await store.runs.update(record.key, expect(record), { state: 'completed' })
    old.push(record.key.id)
    now++
  }
  const ids = async () => (await store.index.list(aRun().key.owner, { limit: 10 })).runs.map(({ key }) => key.id)
  const running = await started(store)
  await store.log.append(running.key, 1, 1, large(1, 40_000))
  t.same((await ids()).sort(), [...old.slice(1), running.key.id].sort(), 'the oldest has gone, and no more than that')
  await store.log.append(running.key, 1, 2, large(2, 50_000))
  t.same(await ids(), [running.key.id])
  t.equal(await codeOf(store.log.append(running.key, 1, 3, large(3, 50_000))), 'AGT_ERR_STORE_FULL')
  t.same((await store.log.read(running.key, 0, 1))?.last, 2)
  t.equal(await codeOf(store.runs.create(aRun({ input: 'x'.repeat(20_000) }), aLease())), 'AGT_ERR_STORE_FULL')
  t.equal((await store.runs.commit(running.key, expect(running), { patch: { state: 'failed' }, firstSeq: 3, events: events(3, 3) })).kind, 'ok', 'what runs can end')
  t.equal((await store.runs.create(aRun({ input: 'x'.repeat(20_000) }), aLease())).kind, 'created')
})

t.test('what is kept is counted on over a restart', async (t) => {
  const path = await dataDir(t)
  const first = await lmdbStore({ path, maxBytes: 50_000 })
  const record = await started(first)
  await first.log.append(record.key, 1, 1, large(1, 40_000))
  await first.close()
  const second = await lmdbStore({ path, maxBytes: 50_000 })
  t.teardown(async () => { await second.close() })
  t.equal(await codeOf(second.log.append(record.key, 1, 2, large(2, 20_000))), 'AGT_ERR_STORE_FULL')
  await second.runs.delete(record.key)
  const other = await started(second)
  t.same(await second.log.append(other.key, 1, 1, large(1, 40_000)), { kind: 'ok', last: 1 })
})

t.test('a log has a limit of its own, whatever is asked for', async (t) => {
  const store = await openLmdb(t, { maxLogBytes: 10_000 })
  const { key } = await started(store)
  for (let seq = 1; seq <= 20; seq++) await store.log.append(key, 1, seq, large(seq, 3_000), { floor: 0 })
  const page = await store.log.read(key, 0, 100)
  t.same([page?.oldest, page?.last, page?.events.map(({ seq }) => seq)], [18, 20, [18, 19, 20]])
})

t.test('the file grows far beyond what it began with', async (t) => {
  const store = await openLmdb(t)
  const { key } = await started(store)
  const size = 1_000_000
  const results = await Promise.all(Array.from({ length: 100 }, async (_, index) => await store.log.append(key, 1, index + 1, large(index + 1, size), { maxBytes: 1e9 })))
  t.same(results.at(-1), { kind: 'ok', last: 100 })
  const page = await store.log.read(key, 0, 100)
  t.same(page?.events.map(({ data }) => data.length), Array.from({ length: 67 }, () => size), 'as much of one log as is kept of any')
  t.same([page?.oldest, page?.last], [34, 100])
})

t.test('a disk that is full is said to be, and nothing acknowledged is lost', { skip: process.platform === 'win32' }, async (t) => {
  const path = await dataDir(t)
  const script = fileURLToPath(new URL('../../../fixtures/lmdb-full-disk.ts', import.meta.url))
  // 8 MiB a file, as a disk of that size would have it. dash counts blocks of 512 bytes, bash of 1,024.
  const command = `ulimit -f 8192; exec "${process.execPath}" --import tsx --conditions=fastify-agents:source "${script}" "${path}"`
  const child = spawn('sh', ['-c', command], { env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const { code, last } = JSON.parse((await text(child.stdout)).trim().split('\n').at(-1) ?? '') as { code: string, last: number }
  t.same(await exit, [0, null])
  t.equal(code, 'AGT_ERR_STORE_FULL')
  t.ok(last > 5, 'it took what it could')
  const store = await lmdbStore({ path })
  t.teardown(async () => { await store.close() })
  const page = await store.log.read({ owner: {}, protocol: 'fake', id: 'run' }, 0, 1_000)
  t.same([page?.last, page?.events.length], [last, last])
})

t.test('a sweep removes all that has run out, in small transactions, and nothing else', async (t) => {
  let now = 1_000_000
  const directory = await openDirectory(await dataDir(t))
  const { table } = directory
  const { ports: store, sweeper, close } = storeOn(table, resolveLmdbOptions({ path: 'unused', endedTtlMs: 1_000, now: () => now }))
  t.teardown(async () => {
    await close()
    await directory.close()
  })
  const keys = () => [...table.keys({ from: Buffer.of(0), to: Buffer.of(0x7f) })].length
  for (let n = 0; n < 60; n++) {
    const { key, ...rest } = aRun()
    await store.index.add({ key, clientId: rest.clientId, session: rest.session, createdAt: n })
    const { record } = await store.runs.create({ key, ...rest, createdAt: n }, aLease())
    await Promise.all(Array.from({ length: 20 }, async (_, i) => await store.log.append(key, 1, i + 1, events(i + 1, i + 1))))
    await store.runs.update(key, expect(record), { state: 'completed' })
    await store.kv.set({ owner: {}, space: 's', key: `${n}` }, n, 500)
    await store.gates.enter({}, `${n}`, { id: 't', ms: 500 })
    await store.nodes.beat(`${n}`, 500)
  }
  const unwritten = aRun()
  await store.index.add({ key: unwritten.key, clientId: 'c', session: 's', createdAt: 1 })
  await store.gates.enter({}, 'parked', { id: 't', ms: undefined })
  const before = keys()
  await sweeper.sweep()
  t.equal(keys(), before, 'nothing was due')
  now += 700_000
  const { removes } = table.counts
  await sweeper.sweep()
  t.equal(keys(), 1, 'the parked ticket is all that is left')
  t.ok(table.counts.removes - removes > 60 * 25)
})

t.test('an ended run is there for its time, also over a restart', async (t) => {
  let now = 1_000_000
  const path = await dataDir(t)
  const first = await lmdbStore({ path, endedTtlMs: 60_000, now: () => now })
  const record = await started(first)
  await first.runs.update(record.key, expect(record), { state: 'completed' })
  await first.close()
  const second = await lmdbStore({ path, endedTtlMs: 60_000, now: () => now })
  t.teardown(async () => { await second.close() })
  now += 59_999
  t.equal((await second.runs.get(record.key))?.state, 'completed')
  now++
  t.equal(await second.runs.get(record.key), undefined)
  t.same((await second.runs.create(aRun({ key: record.key }), aLease())).kind, 'created', 'its key is free again')
  t.same(await second.log.read(record.key, 0, 10), { oldest: 1, last: 0, events: [] })
})

t.test('with sync: disk, what is acknowledged is readable and in order', async (t) => {
  const store = await openLmdb(t, { sync: 'disk' })
  const { key } = await started(store)
  const results = await Promise.all(Array.from({ length: 20 }, async (_, i) => await store.log.append(key, 1, i + 1, events(i + 1, i + 1))))
  t.same(results.map((result) => result.kind), Array.from({ length: 20 }, () => 'ok'))
  t.same((await store.log.read(key, 0, 100))?.events, events(1, 20))
})

t.test('one operation that can not be done leaves those beside it alone', async (t) => {
  const store = await openLmdb(t)
  const record = await started(store)
  const [good, bad, also] = await Promise.allSettled([
    store.kv.set({ owner: {}, space: 's', key: 'a' }, 1, 10_000),
    store.log.append(record.key, 1, 1, [{ seq: 1, data: 7 as never }, { seq: 2, data: 'x' }]),
    store.kv.set({ owner: {}, space: 's', key: 'b' }, 2, 10_000)
  ])
  t.same([good?.status, bad?.status, also?.status], ['fulfilled', 'rejected', 'fulfilled'])
  t.equal(await store.kv.get({ owner: {}, space: 's', key: 'b' }), 2)
  t.same(await store.log.read(record.key, 0, 10), { oldest: 1, last: 0, events: [] })
})
