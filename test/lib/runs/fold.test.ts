import t from 'tap'
import { FOLD_EVERY, foldCadence, FoldKeeper } from '../../../lib/runs/fold.ts'
import { memoryStore, type RunRecord } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { ledger } from '../../helpers/ledger-protocol.ts'
import { agentOf, askFor, makeEngine, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const textOf = (count: number): string => Array.from({ length: count }, (_, index) => `${index} `).join('')

t.test('who has no usable cursor is shown a snapshot, and goes on after it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('a', 'b')
  await turn()
  const first = run.snapshot()
  t.same(first, { epoch: run.topic.epoch, seq: run.topic.stored, events: [{ data: JSON.stringify({ kind: 'snapshot', status: 'running', text: 'ab', asks: [], isOpen: true }), event: 'snapshot', level: 0 }] })
  await execution.text('c')
  execution.finish()
  await run.ended
  const last = run.snapshot()
  t.equal(last?.seq, run.topic.last)
  t.match(JSON.parse(last?.events[0]?.data ?? ''), { status: 'success', text: 'abc', isOpen: false })
})

t.test('nobody is shown what is not stored yet', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await turn()
  const hold = plan.hold('log.append')
  await execution.text('secret')
  const { stored } = run.topic
  t.ok(stored < run.topic.last)
  t.match(run.snapshot(), { seq: stored })
  t.notOk(JSON.stringify(run.snapshot()).includes('secret'))
  hold.release()
  await engine.stop(run)
})

t.test('a protocol without a fold has no snapshots', async (t) => {
  const { engine, store } = makeEngine(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}), { protocol: envelope })))
  await run.ended
  t.equal(run.snapshot(), undefined)
  t.equal(await store.log.loadFold(run.record.key), undefined)
  const { engine: other } = makeEngine(t, { store })
  other.register(envelope)
  t.equal((await other.find({}, 'envelope', 'r1'))?.snapshot(), undefined)
})

const LIMITS = { maxEvents: 1_000, maxBytes: 1_000, ttlMs: 0 }

t.test('a store that ends with the process gets a fold only when its log is half full', async (t) => {
  const { engine, store, plan } = makeEngine(t, { isVolatile: true })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 1_000, maxBytes: 1_000_000, ttlMs: 1_000 } })))
  const execution = await agent.called()
  await execution.text(...Array.from({ length: 490 }, (_, index) => `${index} `))
  await turn()
  t.equal(plan.count('log.saveFold'), 0)
  await execution.text(...Array.from({ length: 20 }, (_, index) => `${index} `))
  await turn()
  t.equal(plan.count('log.saveFold'), 1)
  execution.finish()
  await run.ended
  t.equal((await store.log.read(run.record.key, 0, 1))?.oldest, 1, 'and nothing was trimmed')
})

t.test('a fold is due by events, and by bytes where the log may hold few of them', (t) => {
  const keeper = new FoldKeeper({ initial: () => 0, step: (state) => state, snapshot: () => [] }, {} as RunRecord)
  t.same(foldCadence(true, LIMITS), { events: FOLD_EVERY, maxEvents: 500, bytes: 500 })
  t.same(foldCadence(false, LIMITS), { events: 500, maxEvents: 500, bytes: 500 })
  t.same(foldCadence(false, { ...LIMITS, maxEvents: 16 }), { events: FOLD_EVERY, maxEvents: FOLD_EVERY, bytes: 500 })
  keeper.note([{ seq: 1, data: 'x'.repeat(499) }])
  t.equal(keeper.isDue(1, foldCadence(false, LIMITS)), false)
  keeper.note([{ seq: 2, data: 'x' }])
  t.equal(keeper.isDue(2, foldCadence(false, LIMITS)), true)
  keeper.saved(2)
  t.equal(keeper.isDue(2, foldCadence(false, LIMITS)), false)
  t.end()
})

t.test('large events do not have all that went before stored with each of them', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 1_000, maxBytes: 64 * 1024, ttlMs: 1_000 } })))
  const execution = await agent.called()
  for (let i = 0; i < 100; i++) {
    await execution.text('x'.repeat(64 * 1024))
    await turn()
  }
  // Each fold is as long as everything before it: they double, so that 100 events need as many folds as 100 has binary digits.
  t.equal(plan.count('log.saveFold'), 7)
  execution.finish()
  await run.ended
  t.match(JSON.parse(run.snapshot()?.events[0]?.data ?? ''), { text: 'x'.repeat(100 * 64 * 1024), status: 'success' })
  t.ok((await store.log.read(run.record.key, 0, 1))?.oldest ?? 0 > 1, 'and the old end was trimmed')
})

t.test('a large state is not stored every 256 events, but before its log is half full', (t) => {
  const keeper = new FoldKeeper({ initial: () => 'x'.repeat(20_000), step: (state) => state, snapshot: () => [] }, {} as RunRecord)
  const cadence = foldCadence(true, { maxEvents: 2_000, maxBytes: 1_000_000, ttlMs: 0 })
  const due: number[] = []
  for (let seq = 1; seq <= 3_000; seq++) {
    keeper.note([{ seq, data: 'x'.repeat(50) }])
    if (!keeper.isDue(seq, cadence)) continue
    due.push(seq)
    keeper.saved(keeper.at(seq).seq)
  }
  // 40 kB at 50 bytes each are 800 events.
  t.same(due, [256, 1_057, 1_858, 2_659])
  t.end()
})

t.test('the fold is stored every 256 events, and with the end of a long run', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  const some = FOLD_EVERY + 10
  const tell = async (part: number): Promise<void> => {
    await execution.text(...Array.from({ length: some }, (_, index) => `${part * some + index} `))
    await turn()
  }
  await tell(0)
  await tell(1)
  t.equal(plan.count('log.saveFold'), 2)
  const fold = await store.log.loadFold(run.record.key)
  t.ok((fold?.seq ?? 0) > 2 * FOLD_EVERY && (fold?.seq ?? 0) <= run.topic.last)
  const hold = plan.hold('log.saveFold')
  await tell(2)
  await tell(3)
  t.equal(plan.count('log.saveFold'), 3, 'one at a time')
  hold.release()
  await turn()
  plan.failBefore('log.saveFold', { times: Infinity })
  await tell(4)
  plan.heal()
  execution.finish()
  await run.ended
  const last = await store.log.loadFold(run.record.key)
  t.same(last, { seq: run.topic.last, state: JSON.stringify({ status: 'success', text: textOf(5 * some), asks: [], isOpen: false }) })
})

t.test('a log that was trimmed is still told: the fold and what came after it', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 16, maxBytes: 1_000_000, ttlMs: 1_000 } })))
  const execution = await agent.called()
  for (let i = 0; i < 10; i++) await execution.text(...Array.from({ length: 100 }, (_, index) => `${i * 100 + index} `))
  execution.finish()
  const record = await run.ended
  const page = await store.log.read(record.key, 0, 10)
  t.ok((page?.oldest ?? 0) > 256, 'the old end is gone')
  t.match(JSON.parse(run.snapshot()?.events[0]?.data ?? ''), { text: textOf(1_000), status: 'success' })

  const { engine: other } = makeEngine(t, { store })
  other.register(ledger)
  const found = await other.find({}, 'ledger', 'r1')
  t.same(found?.snapshot(), run.snapshot())
  t.equal(found?.topic.oldest, page?.oldest)
  t.equal(found?.topic.last, run.topic.last)
})

t.test('a fold goes over a pause and a restart', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const { engine } = makeEngine(t, { store })
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('a')
  await execution.say(...askFor('c1'))
  execution.finish()
  await run.settled()
  const snapshot = run.snapshot()
  t.match(JSON.parse(snapshot?.events[0]?.data ?? ''), { status: 'waiting', text: 'a', asks: ['ask-c1'] })
  await engine.close()
  const { engine: other } = makeEngine(t, { store })
  other.register(ledger)
  const found = await other.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.same(found.snapshot(), snapshot)
  await other.stop(found)
  const ended = await other.find({}, 'ledger', 'r1')
  t.match(JSON.parse(ended?.snapshot()?.events[0]?.data ?? ''), { status: 'cancelled', text: 'a' })
})

t.test('the keeper folds lazily, in order, and from where it was stored', async (t) => {
  const run = {} as RunRecord
  const steps: number[] = []
  const fold = { initial: () => ({ count: 0 }), step: (state: { count: number }, { seq }: { seq: number }) => { steps.push(seq); state.count++; return state }, snapshot: () => [] }
  const keeper = new FoldKeeper(fold, run, { seq: 2, state: '{"count":2}' })
  keeper.note([])
  keeper.note([3, 4].map((seq) => ({ seq, data: 'x' })))
  keeper.note([3, 4, 5].map((seq) => ({ seq, data: 'x' })))
  keeper.note([{ seq: 5, data: 'again' }])
  t.same(steps, [])
  t.equal(keeper.savedSeq, 2)
  const state = keeper.at(4)
  t.same(state, { seq: 4, state: '{"count":4}' })
  keeper.saved(4)
  keeper.saved(3)
  t.equal(keeper.savedSeq, 4)
  t.same(keeper.at(9), { seq: 5, state: '{"count":5}' })
  t.same(state, { seq: 4, state: '{"count":4}' }, 'a stored state does not change any more')
  const cadence = foldCadence(true, LIMITS)
  keeper.note([{ seq: 6, data: 'longer than two states' }])
  t.equal(keeper.isDue(4 + FOLD_EVERY, cadence), true)
  t.equal(keeper.isDue(3 + FOLD_EVERY, cadence), false)
  t.same(steps, [3, 4, 5])
})
