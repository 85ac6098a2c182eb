import t, { type Test } from 'tap'
import { StoredBytes } from '../../../lib/runs/stored-bytes.ts'
import { memoryStore, type RunIndex } from '../../../lib/stores/index.ts'
import { agentOf, makeEngine, pause, runOf } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const LIMIT = { code: 'AGT_ERR_RUN_STORAGE_LIMIT', statusCode: 429 }

/** A clock for the store and for us. */
function fakeTime (t: Test): { now: number } {
  const time = { now: 1_000_000 }
  t.intercept(performance, 'now', { value: () => time.now })
  return time
}

const saying = (length: number) => agentOf(async function * () { yield { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'x'.repeat(length) } })

t.test('what an owner has stored counts: inputs and logs, of runs that have ended on any node, until they expire', async (t) => {
  const time = fakeTime(t)
  const store = memoryStore({ now: () => time.now, endedTtlMs: 60_000 })
  t.teardown(() => store.close())
  const limits = { maxStoredBytes: 10_000 }
  const [a, b] = [makeEngine(t, { store, limits }), makeEngine(t, { store, limits })]
  const start = async (engine: typeof a, name: string, length: number, owner = { id: 'ann' }) =>
    await runOf(await engine.engine.start(specOf(saying(length), { owner, session: name, clientId: name, stored: 'y'.repeat(1_000) }))).ended
  const record = await start(a, 'a1', 3_000)
  t.ok((record.bytes ?? 0) > 4_000 && (record.bytes ?? 0) < 5_000, `${record.bytes}`)
  await start(b, 'b1', 3_000)
  await t.rejects(start(b, 'b2', 1).then(async () => await start(b, 'b3', 1)), LIMIT)
  await start(a, 'b1', 3_000, { id: 'bob' })
  time.now += 61_000
  t.equal((await start(b, 'b4', 1)).state, 'completed', 'what has expired is gone')
})

t.test('a single request that is larger than the limit is refused, and nothing is written for it', async (t) => {
  const { engine, store } = makeEngine(t, { limits: { maxStoredBytes: 100 } })
  await t.rejects(engine.start(specOf(new ScriptedAgent(), { stored: 'x'.repeat(200) })), LIMIT)
  t.same((await store.index.list({}, { limit: 9 })).runs, [])
  t.equal(await store.gates.holder({}, 's1'), undefined)
})

t.test('a pause and each execution after it add to what the run takes; no more of its log counts than is kept', async (t) => {
  const { engine, store } = makeEngine(t, { limits: { maxStoredBytes: 1_000_000 } })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { stored: 'xx', replay: { maxEvents: 1_000, maxBytes: 2_000, ttlMs: 1 } })))
  t.equal(run.record.bytes, 4)
  await pause(agent, run)
  const paused = (await store.runs.get(run.record.key))?.bytes ?? 0
  t.ok(paused > 4 && paused < 1_000, `${paused}`)
  const big = runOf(await engine.start(specOf(saying(10_000), { session: 's2', clientId: 'big', stored: 'xx', replay: { maxEvents: 1_000, maxBytes: 2_000, ttlMs: 1 } })))
  t.equal((await big.ended).bytes, 2_004)
})

t.test('the store is looked at once for many starts, again after a minute, and after five seconds for who is refused', async (t) => {
  const time = fakeTime(t)
  const store = memoryStore({ now: () => time.now })
  t.teardown(() => store.close())
  const { engine, plan } = makeEngine(t, { store, limits: { maxStoredBytes: 50_000 } })
  let count = 0
  const start = async (bytes = 10) => await runOf(await engine.start(specOf(saying(1), { session: `s${++count}`, clientId: `r${count}`, stored: 'x'.repeat(bytes) }))).ended
  for (let i = 0; i < 5; i++) await start()
  t.equal(plan.count('index.list'), 1)
  time.now += 59_000
  await start()
  t.equal(plan.count('index.list'), 1)
  time.now += 1_000
  await start()
  t.equal(plan.count('index.list'), 2)
  await start(45_000)
  await t.rejects(start(10_000), LIMIT)
  await t.rejects(start(10_000), LIMIT)
  t.equal(plan.count('index.list'), 2)
  time.now += 5_000
  await t.rejects(start(10_000), LIMIT)
  t.equal(plan.count('index.list'), 3)
})

t.test('the owners that were not asked for longest are forgotten, and looked at again', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const asked: string[] = []
  const index = { ...store.index, list: async (owner: { readonly id?: string }) => { asked.push(owner.id ?? ''); return { runs: [] } } } as unknown as RunIndex
  const stored = new StoredBytes({ index, maxStoredBytes: 10 })
  for (let count = 0; count <= 1_000; count++) await stored.check({ id: `${count}` }, 1)
  asked.length = 0
  await stored.check({ id: '1' }, 1)
  await stored.check({ id: '0' }, 1)
  stored.add({ id: 'nobody' }, 5)
  t.same(asked, ['0'])
})
