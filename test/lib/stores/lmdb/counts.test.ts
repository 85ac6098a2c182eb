import { open } from 'lmdb'
import t from 'tap'
import { aLease, anInterrupt, events, expect, recordOf } from '../../../../lib/stores/conformance/harness.ts'
import { resolveLmdbOptions } from '../../../../lib/stores/lmdb/options.ts'
import { storeOn, type TableStore } from '../../../../lib/stores/lmdb/store-on.ts'
import { Table, type TableCounts } from '../../../../lib/stores/lmdb/table.ts'
import { dataDir } from '../../../helpers/data-dir.ts'

type Ports = TableStore['ports']

const owner = { id: 'ann' }
const protocol = 'fake'
const session = 's'
/** More by the environment, on a machine that has the time. */
const MANY = Number(process.env['FINISHED_RUNS'] ?? 20_000)

/** Finished runs of one session, so that whoever walked through them would be seen to. */
async function finish (store: Ports, from: number, to: number): Promise<void> {
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

/** What each operation of one run asks of the table. Steps of the writer one by one, so that each is a transaction of its own. */
async function costs (store: Ports, counts: TableCounts, id: string, createdAt: number): Promise<Readonly<Record<string, TableCounts>>> {
  const found: Record<string, TableCounts> = {}
  const count = async <Result>(name: string, call: () => Promise<Result>): Promise<Result> => {
    const before = { ...counts }
    const result = await call()
    found[name] = Object.fromEntries(Object.entries(counts).map(([what, n]) => [what, n - before[what as keyof TableCounts]])) as unknown as TableCounts // the same members
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
  await count('list waiting', async () => await store.index.list(owner, { limit: 5, states: ['waiting'] }))
  await count('claim', async () => await store.interrupts.claim(key, { run: 'other', fence: 1 }, [{ id: 'i', decision: 1 }]))
  await count('enter', async () => await store.gates.enter(owner, session, { id, ms: 10_000 }))
  await count('leave', async () => await store.gates.leave(owner, session, id))
  await count('set', async () => { await store.kv.set({ owner, space: 's', key: id }, 1, 10_000) })
  await count('update', async () => await store.runs.update(key, expect(paused), { state: 'completed' }))
  await count('delete', async () => { await store.runs.delete(key) })
  return found
}

t.test('no operation costs more with many finished runs than with few', { timeout: 600_000 }, async (t) => {
  const db = open<Buffer, Buffer>({ path: await dataDir(t), noSubdir: false, keyEncoding: 'binary', encoding: 'binary' })
  const table = new Table(db)
  const { ports, close } = storeOn(table, resolveLmdbOptions({ path: 'unused', now: () => 1_700_000_000_000 }))
  t.teardown(async () => {
    await close()
    await table.close()
  })
  await finish(ports, 0, 100)
  await costs(ports, table.counts, 'new-0', 10_000_000)
  const few = await costs(ports, table.counts, 'new-1', 10_000_000)
  await finish(ports, 100, MANY)
  const many = await costs(ports, table.counts, 'new-2', 10_000_000)
  t.same(many, few)
  t.match(few['append'], { gets: 1, puts: 3, removes: 0, scans: 0 }, 'an append is a block, where the log ends, and how much is kept')
  t.same(few['read'], { gets: 1, puts: 0, removes: 0, scans: 2, scanned: 3 }, 'reading a log is one scan, and one step to its beginning')
})
