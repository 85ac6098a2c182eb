import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { RunEngine } from '../../../lib/runs/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { binaryView, envelope, rpcView, rpcWrap } from '../../helpers/envelope-protocol.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { agentOf, makeEngine, Reader, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('runs an agent from its start to its stored terminal', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  t.equal(run.record.state, 'running')
  const execution = await agent.called()
  await execution.text('Hello', ' world')
  t.same(kindsOf(run), ['started', 'text', 'text'])
  execution.finish()
  const record = await run.ended
  t.equal(record, await run.settled())
  t.match(record, { state: 'completed', end: { kind: 'completed', code: 'MODEL_STOP' }, endedAt: Number, epoch: run.topic.epoch, lastSeq: run.topic.last })
  t.same(kindsOf(run), ['started', 'text', 'text', 'text-end', 'success'])
  t.equal(run.topic.stored, run.topic.last)
  t.equal(run.topic.isEnded, true)
})

t.test('what is fixed at the start is in the record', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { detail: { level: 'full' }, stored: { ask: 'why' }, idempotency: { key: 'k', fingerprint: 'f' }, owner: { id: 'u', tenant: 'x' } })))
  t.match(run.record, {
    key: { owner: { id: 'u', tenant: 'x' }, protocol: 'ledger' }, clientId: 'r1', session: 's1', agent: 'scripted', node: engine.node, detail: { level: 'full' }, input: { ask: 'why' }, fingerprint: 'f'
  })
  await engine.stop(run)
})

t.test('finds runs by the client\'s id, the session, the epoch and in lists, for their owner alone', async (t) => {
  const { engine } = makeEngine(t)
  const owner = { id: 'u1' }
  const agent = agentOf(async function * () {})
  const first = runOf(await engine.start(specOf(agent, { owner })))
  await first.ended
  while (Date.now() === first.record.createdAt) await turn() // newest first, by milliseconds
  const second = runOf(await engine.start(specOf(agent, { owner, clientId: 'r2' })))
  await second.ended
  t.equal(await engine.find(owner, 'ledger', 'r1'), first)
  t.equal(await engine.lastOf(owner, 'ledger', 's1'), second)
  t.equal(await engine.findByEpoch(owner, 'ledger', 's1', first.topic.epoch), first)
  t.same((await engine.list(owner, { limit: 10 })).runs.map(({ clientId }) => clientId), ['r2', 'r1'])
  for (const stranger of [{}, { id: 'u2' }, { id: 'u1', tenant: 'x' }]) {
    t.equal(await engine.find(stranger, 'ledger', 'r1'), undefined)
    t.equal(await engine.lastOf(stranger, 'ledger', 's1'), undefined)
    t.equal(await engine.findByEpoch(stranger, 'ledger', 's1', first.topic.epoch), undefined)
    t.same((await engine.list(stranger, { limit: 10 })).runs, [])
    t.equal(await engine.stopSession(stranger, 'ledger', 's1'), 'unknown')
    t.same(await engine.openInterrupts(stranger, 'ledger', 's1'), [])
  }
  t.equal(await engine.find(owner, 'envelope', 'r1'), undefined, 'another protocol')
})

t.test('an id that is unique in its session is found there', async (t) => {
  const { engine } = makeEngine(t)
  const agent = agentOf(async function * () {})
  const runs = []
  for (const session of ['a', 'b', 'c']) {
    const run = runOf(await engine.start(specOf(agent, { protocol: envelope, session })))
    await run.ended
    runs.push(run)
  }
  t.equal(await engine.find({}, 'envelope', 'r1', 'a'), runs[0])
  t.equal(await engine.find({}, 'envelope', 'r1', 'b'), runs[1])
  t.equal(await engine.find({}, 'envelope', 'r1', 'none'), undefined)
})

t.test('a run of many pages is found', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = agentOf(async function * () {})
  const first = runOf(await engine.start(specOf(agent, { protocol: envelope, clientId: 'old' })))
  await first.ended
  const { index } = store
  for (let i = 0; i < 120; i++) {
    const run = runOf(await engine.start(specOf(agent, { protocol: envelope, clientId: `r${i}` })))
    await run.ended
  }
  t.ok((await index.list({}, { limit: 100 })).cursor)
  t.equal(await engine.findByEpoch({}, 'envelope', 's1', first.topic.epoch), first)
})

t.test('bare integer cursors: three detail views, each with its own previous sequence', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const readers = { status: new Reader(run, ledgerView('status')), full: new Reader(run, ledgerView('full')), verbose: new Reader(run, ledgerView('verbose')) }
  const execution = await agent.called()
  await execution.say({ type: 'MODEL_CALL_START' })
  await execution.text('a')
  execution.finish()
  await run.ended
  await Promise.all(Object.values(readers).map((reader) => reader.until(({ end }) => end !== undefined)))
  const cursors = (reader: Reader): string[] => reader.lines.map((text) => text.split(' ').slice(0, 2).join('>'))
  const kinds = (reader: Reader): string[] => reader.lines.map((text) => (JSON.parse(text.slice(text.indexOf('{'))) as { kind: string }).kind)
  t.same(kinds(readers.status), ['started', 'success'])
  t.same(kinds(readers.full), ['started', 'text', 'text-end', 'success'])
  t.same(cursors(readers.verbose), run.topic.read(0).map(({ seq }) => `${seq - 1}>${seq}`))
  t.same(cursors(readers.status), ['0>1', `1>${run.topic.last}`])
  const again = new Reader(run, ledgerView('status'), { after: '1' })
  await again.until(({ end }) => end !== undefined)
  t.same(again.lines, readers.status.lines.slice(1), 'a bare sequence goes on where it stood')
})

t.test('an envelope is put around what is logged, and a second binding serves the same log', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { protocol: envelope })))
  const one = new Reader(run, rpcView, { wrap: rpcWrap(7), upTo: 'last', lossless: true })
  const two = new Reader(run, rpcView, { wrap: rpcWrap('seven') })
  const binary = new Reader(run, binaryView)
  const execution = await agent.called()
  await execution.text('a')
  execution.finish()
  await run.ended
  for (const reader of [one, two, binary]) await reader.until(({ end }) => end === 'complete')
  t.same(one.lines.map((text) => JSON.parse(text) as unknown), [
    { jsonrpc: '2.0', id: 7, result: { begin: 'r1' } }, { jsonrpc: '2.0', id: 7, result: { delta: 'a' } }, { jsonrpc: '2.0', id: 7, result: { end: 'success' } }
  ])
  t.same(two.lines.map((text) => (JSON.parse(text) as { id: string }).id), ['seven', 'seven', 'seven'])
  t.equal(binary.text, run.topic.read(0).map(({ data }) => String.fromCharCode(data.length >> 8, data.length & 255) + data).join(''))
})

t.test('a protocol is registered once under its name', async (t) => {
  const { engine } = makeEngine(t)
  engine.register(ledger)
  engine.register(ledger)
  t.throws(() => { engine.register({ ...ledger }) }, { code: 'AGT_ERR_RUN_PROTOCOL_TAKEN' })
})

t.test('stores and buses that were passed in stay open', async (t) => {
  const bus = new EventBus()
  const store = memoryStore()
  const engine = new RunEngine({ bus, store, node: 'n1' })
  t.equal(engine.node, 'n1')
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  await run.ended
  await engine.close()
  t.equal(run.topic.read(0).length > 0, true)
  t.equal((await store.index.last({}, 'ledger', 's1'))?.state, 'completed')
  bus.close()
  await store.close()
})

t.test('an engine alone has a store and a bus of its own', async (t) => {
  const engine = new RunEngine()
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  t.equal((await run.ended).state, 'completed')
  await engine.close()
  t.same(await engine.start(specOf(agentOf(async function * () {}))), { kind: 'closing' })
  t.same(await engine.resume(run, { ...specOf(agentOf(async function * () {})), decisions: [] }), { kind: 'closing' })
  t.same(run.topic.read(0), [], 'its topics are gone')
})

t.test('a session is stopped without any subscriber, by its run or as a whole', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const queued = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  await agent.called()
  t.equal(await engine.stopSession({}, 'ledger', 's1', 'other'), 'unknown')
  t.equal(await engine.stopSession({}, 'envelope', 's1'), 'unknown')
  t.equal(await engine.stopSession({}, 'ledger', 's1', 'r2'), 'stopped')
  t.same([run.record.state, queued.record.state], ['running', 'cancelled'])
  t.same(kindsOf(queued), ['started', 'cancelled'], 'a run that never began ends legally')
  t.equal(await engine.stopSession({}, 'ledger', 's1'), 'stopped')
  t.equal(run.record.state, 'cancelled')
  t.equal(await engine.stopSession({}, 'ledger', 's1'), 'unknown')
})

t.test('lone surrogates are mended before anything is told or stored', async (t) => {
  const { engine, store } = makeEngine(t)
  const raw = { ...envelope, name: 'raw', project: () => ({ open: () => {}, next: () => {}, close: (_end: unknown, emit: (data: string) => void) => { emit('x\ud83d') } }) }
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}), { protocol: raw })))
  const record = await run.ended
  t.same(run.topic.read(0).map(({ data }) => data), ['x\ufffd'])
  t.same((await store.log.read(record.key, 0, 10))?.events.map(({ data }) => data), ['x\ufffd'])
})

t.test('a surrogate pair that is split over two deltas is told and stored as one character', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { protocol: envelope })))
  const execution = await agent.called()
  await execution.text('\ud83d', '\ude00!', 'x\ud83d')
  execution.finish()
  await run.ended
  t.equal(run.topic.read(0).map(({ data }) => (JSON.parse(data) as { delta?: string }).delta ?? '').join(''), '\u{1f600}!x\ufffd')
})

t.test('a start that the bus refuses leaves nothing behind', async (t) => {
  const bus = new EventBus({ maxTopics: 1 })
  const { engine, store } = makeEngine(t, { bus })
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  await agent.called()
  const second = specOf(agent, { clientId: 'r2', session: 's2', idempotency: { key: 'k', fingerprint: 'f' } })
  await t.rejects(engine.start(second), { code: 'AGT_ERR_BUS_TOPIC_LIMIT' })
  t.equal(await store.gates.holder({}, 's2'), undefined)
  t.equal(await store.index.find({}, 'ledger', 'r2'), undefined)
  await engine.stop(first)
  await turn()
  const free = runOf(await engine.start(second))
  t.equal(free.record.state, 'running', 'the key is free again')
  bus.close()
  await engine.stop(free)
  t.equal(free.record.state, 'cancelled', 'a bus that is closed under the engine costs the readers, not the run')
})
