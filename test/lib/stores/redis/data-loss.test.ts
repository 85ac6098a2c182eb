import t, { type Test } from 'tap'
import { redisStore } from '../../../../lib/stores/redis/index.ts'
import { type RunRecord, type Store } from '../../../../lib/stores/index.ts'
import { aLease, anInterrupt, events, expect, LEASE_MS, recordOf, started, waiting } from '../../../../lib/stores/conformance/harness.ts'
import { type Run } from '../../../../lib/runs/index.ts'
import { approve, makeEngine, pause, runOf, turn } from '../../../helpers/run-engine.ts'
import { redisTests, type TestRedis } from '../../../helpers/redis-server.ts'
import { specOf } from '../../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'

const test = redisTests(t, { settings: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })

function storeOn (t: Test, redis: TestRedis): Store {
  const client = redis.client({ retryStrategy: () => 20 })
  const store = redisStore({ client })
  t.teardown(async () => {
    await store.close()
    redis.drop(client)
  })
  return store
}

async function stored (run: Run): Promise<void> {
  while (run.topic.stored < run.topic.last) await turn()
}

async function logOf (store: Store, { key }: RunRecord): Promise<readonly string[]> {
  const page = await store.log.read(key, 0, 1_000)
  if (page?.oldest !== 1 || page.events.some(({ seq }, index) => seq !== index + 1)) throw new Error(`holes: ${JSON.stringify(page)}`)
  return page.events.map(({ data }) => data)
}

test('a run goes on over a restart that lost its last events: nothing is lost or repeated', async (t, redis) => {
  const store = storeOn(t, redis)
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('a', 'b')
  await stored(run)
  await redis.keepDisk()
  const kept = run.topic.stored
  for (const delta of ['c', 'd', 'e']) {
    await execution.text(delta)
    await stored(run)
  }
  t.ok(run.topic.stored > kept)
  await redis.restartAsKept()
  t.equal((await store.log.read(run.record.key, 0, 1))?.last, kept, 'the restart has lost something')
  await execution.text('f')
  await stored(run)
  t.strictSame(await logOf(store, run.record), run.topic.read(0).map(({ data }) => data))
  execution.finish()
  const record = await run.ended
  t.match(record, { state: 'completed', fence: 1 })
  t.match(await store.runs.get(record.key), { state: 'completed', lastSeq: run.topic.last })
  t.strictSame(await logOf(store, record), run.topic.read(0).map(({ data }) => data))
})

test('the same where the loss is noticed by the end of the run', async (t, redis) => {
  const store = storeOn(t, redis)
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('a')
  await stored(run)
  await redis.keepDisk()
  await execution.text('b', 'c')
  await stored(run)
  await redis.restartAsKept()
  execution.finish()
  const record = await run.ended
  t.match(await store.runs.get(record.key), { state: 'completed', lastSeq: run.topic.last })
  t.strictSame(await logOf(store, record), run.topic.read(0).map(({ data }) => data))
})

test('who owned a run that the restart does not know tells nobody anything more', async (t, redis) => {
  const store = storeOn(t, redis)
  await redis.keepDisk()
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('a')
  await stored(run)
  await redis.restartAsKept()
  const told = run.topic.last
  t.same(await store.log.append(run.record.key, 1, told + 1, events(told + 1, told + 1)), { kind: 'gone' })
  t.same(await store.leases.renew(run.record.key, 1, LEASE_MS), { kind: 'lost', fence: 0 })
  await execution.text('b')
  await execution.returned
  t.equal(await store.runs.get(run.record.key), undefined)
})

test('an answer that the restart has forgotten can be given again; who had begun to act on it is stopped', async (t, redis) => {
  const store = storeOn(t, redis)
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  await redis.keepDisk()
  const spec = { ...specOf(agent), decisions: [approve('c1')] }
  runOf(await engine.resume(run, spec))
  const forgotten = await agent.called()
  await forgotten.text('a')
  await stored(run)
  await redis.restartAsKept()
  t.match(await store.runs.get(run.record.key), { state: 'waiting', fence: 1 })
  await forgotten.text('b')
  await forgotten.returned
  const { engine: other } = makeEngine(t, { store: storeOn(t, redis) })
  other.register(spec.protocol)
  const found = await other.find({}, 'ledger', 'r1')
  if (found === undefined) throw new Error('the run waits')
  const resumed = runOf(await other.resume(found, spec))
  const execution = await agent.called()
  await execution.text('c')
  execution.finish()
  t.match(await resumed.ended, { state: 'completed', fence: 2 })
  t.notOk((await logOf(store, run.record)).some((line) => line.includes('"b"')))
})

test('a fence that is given a second time after a restart is not that of the first owner', async (t, redis) => {
  const [a, b] = [storeOn(t, redis), storeOn(t, redis)]
  const { key } = await waiting(a)
  await redis.keepDisk()
  const first = recordOf(await a.leases.acquire(key, aLease('node-a')))
  t.equal((await a.log.append(key, 2, 1, events(1, 3))).kind, 'ok')
  await redis.restartAsKept()
  const second = recordOf(await b.leases.acquire(key, aLease('node-b')))
  t.same([first.fence, second.fence, first.version, second.version], [2, 2, 3, 3])
  t.equal((await b.log.append(key, 2, 1, events(1, 3, 'b'))).kind, 'ok')
  const commit = { patch: { state: 'completed' }, firstSeq: 4, events: events(4, 4) } as const
  t.same(await a.runs.commit(key, expect(first), commit), { kind: 'stale', record: second })
  t.same(await a.runs.update(key, expect(first), { fingerprint: 'a' }), { kind: 'stale', record: second })
  t.same(await a.log.saveFold(key, 2, { seq: 3, state: 'a' }), { kind: 'fenced', fence: 2 })
  await a.leases.release(key, 2)
  t.same(await a.log.append(key, 2, 4, events(4, 4)), { kind: 'fenced', fence: 2 }, 'what would follow just as well')
  t.same(await b.leases.renew(key, 2, LEASE_MS), { kind: 'ok' })
  t.equal((await b.runs.commit(key, expect(second), commit)).kind, 'ok')
  t.same((await b.log.read(key, 0, 10))?.events, [...events(1, 3, 'b'), ...events(4, 4)])
})

test('an owner whose record was rolled back, but not its ownership, ends its run all the same', async (t, redis) => {
  const store = storeOn(t, redis)
  const record = await started(store, { state: 'pending' })
  const { key } = record
  await store.log.append(key, 1, 1, events(1, 2))
  await redis.keepDisk()
  const running = recordOf(await store.runs.update(key, expect(record), { state: 'running' }))
  await store.log.append(key, 1, 3, events(3, 4))
  await redis.restartAsKept()
  const commit = { patch: { state: 'waiting' }, firstSeq: 5, events: events(5, 5), interrupts: [anInterrupt('i')] } as const
  const stale = await store.runs.commit(key, expect(running), commit)
  t.match(stale, { kind: 'stale', record: { version: 1, fence: 1, state: 'pending' } }, 'the same fence: the owner goes on from this version')
  t.match(await store.runs.commit(key, expect(recordOf(stale)), commit), { kind: 'misplaced', last: 2 })
  t.same(await store.log.append(key, 1, 3, events(3, 4)), { kind: 'ok', last: 4 })
  t.match(await store.runs.commit(key, expect(recordOf(stale)), commit), { kind: 'ok', record: { state: 'waiting', lastSeq: 5 } })
  t.match(await store.interrupts.open(key.owner, key.protocol, record.session), [{ id: 'i', state: 'open' }])
})
