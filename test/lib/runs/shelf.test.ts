import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { agentOf, approve, askFor, makeEngine, makePair, pause, Reader, resultOf, runOf, turn } from '../../helpers/run-engine.ts'
import { linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const TEXT = agentOf(async function * () { yield { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'x' } })

t.test('an ended run is replayed from memory while its topic lasts, then from the store', async (t) => {
  const bus = new EventBus()
  t.teardown(() => { bus.close() })
  const { engine, plan } = makeEngine(t, { bus })
  const run = runOf(await engine.start(specOf(TEXT)))
  await run.ended
  const lines = linesOf(run)
  t.equal(await engine.find({}, 'ledger', 'r1'), run)
  t.equal(plan.count('log.read'), 0)
  bus.drop(run.topic.key)
  const [one, two] = await Promise.all([engine.find({}, 'ledger', 'r1'), engine.lastOf({}, 'ledger', 's1')])
  if (one === undefined) return t.fail()
  t.equal(one, two, 'two look-ups at once read it once')
  t.not(one, run)
  t.same(linesOf(one), lines)
  t.match(one.topic, { epoch: run.topic.epoch, isEnded: true, stored: lines.length })
  t.equal(await one.ended, await one.settled())
  t.match(one.record, { state: 'completed' })
  const reader = new Reader(one, ledgerView('verbose'), { after: { epoch: run.topic.epoch, seq: 3 } })
  t.equal(reader.end, 'complete')
  t.equal(reader.lines.length, lines.length - 3)
  const connection = one.connect()
  connection.close()
  t.equal(await engine.find({}, 'ledger', 'r1'), one)
})

t.test('a long run is read page by page', async (t) => {
  const bus = new EventBus()
  t.teardown(() => { bus.close() })
  const { engine } = makeEngine(t, { bus })
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    for (let i = 0; i < 2_500; i++) yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: `${i} ` }
  }), { replay: { maxEvents: 5_000, maxBytes: 10_000_000, ttlMs: 60_000 } })))
  await run.ended
  const lines = linesOf(run)
  const snapshot = run.snapshot()
  bus.drop(run.topic.key)
  const found = await engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.same(linesOf(found), lines)
  t.same(found.snapshot(), snapshot)
})

t.test('a run of another node is brought up to date by each look-up', async (t) => {
  const { a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await turn()
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.match(found.record, { state: 'running' })
  await execution.say(...askFor('c1'))
  execution.finish()
  await run.settled()
  t.equal(await b.engine.find({}, 'ledger', 'r1'), found)
  t.match(await found.settled(), { state: 'waiting' })
  t.same(linesOf(found), linesOf(run))
  t.equal(found.topic.isEnded, false)
  await a.engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  await second.say(...resultOf('c1'))
  second.finish()
  await run.ended
  await b.engine.find({}, 'ledger', 'r1')
  t.match(await found.ended, { state: 'completed' })
  t.same(linesOf(found), linesOf(run))
})

t.test('a run that went on elsewhere is taken up from what the store holds', async (t) => {
  const { store, a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  const there = await b.engine.find({}, 'ledger', 'r1')
  if (there === undefined) return t.fail()
  await b.engine.resume(there, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  await second.say(...askFor('c2'))
  second.finish()
  await (await b.engine.find({}, 'ledger', 'r1'))?.settled()

  const result = await a.engine.resume(run, { ...specOf(agent), decisions: [approve('c2')] })
  const back = runOf(result)
  const third = await agent.called()
  third.finish()
  t.match(await back.ended, { state: 'completed' })
  const stored = await store.log.read(back.record.key, 0, 1_000)
  t.same(linesOf(back), stored?.events.map(({ data }) => JSON.parse(data) as unknown))
  t.same(stored?.events.map(({ seq }) => seq), stored?.events.map((_, index) => index + 1))
})

t.test('runs of a protocol that is not served here are unknown', async (t) => {
  const { a, b } = makePair(t)
  const run = runOf(await a.engine.start(specOf(TEXT, { protocol: envelope })))
  await run.ended
  t.equal(await b.engine.find({}, 'envelope', 'r1'), undefined)
})

t.test('a run that expires while it is read is unknown', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const a = makeEngine(t, { store })
  const run = runOf(await a.engine.start(specOf(TEXT)))
  await run.ended
  for (const skip of [0, 1]) {
    const b = makeEngine(t, { store })
    b.engine.register(ledger)
    const hold = b.plan.hold('log.read', { skip })
    const found = b.engine.find({}, 'ledger', 'r1')
    await hold.arrived
    if (skip === 1) await store.runs.delete(run.record.key)
    else b.plan.failBefore('log.read')
    hold.release()
    if (skip === 0) await t.rejects(found, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
    else t.equal(await found, undefined)
  }
})

t.test('a look-up that failed half-way goes on where it stopped', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const a = makeEngine(t, { store })
  const run = runOf(await a.engine.start(specOf(TEXT)))
  await run.ended
  const b = makeEngine(t, { store })
  b.engine.register(ledger)
  b.plan.failBefore('log.read', { skip: 2 })
  await t.rejects(b.engine.find({}, 'ledger', 'r1'), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.same(linesOf(found), linesOf(run))
  t.match(JSON.parse(found.snapshot()?.events[0]?.data ?? ''), { text: 'x', status: 'success' })
})
