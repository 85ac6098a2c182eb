import t, { type Test } from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { type Run } from '../../../lib/runs/index.ts'
import { memoryStore, type Store } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { fakeTime, turns } from '../../helpers/fake-time.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, askFor, makeEngine, pause, Reader, runOf, type TestEngine } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const LEASE_MS = 3_000

interface Nodes {
  readonly store: Store
  readonly a: TestEngine
  readonly b: TestEngine
  readonly c: TestEngine
  /** Lets time go by, for the stores and for everybody. */
  pass (ms: number): Promise<void>
}

/** Three nodes on one store, in a time of their own. */
function nodes (t: Test): Nodes {
  const { now, pass } = fakeTime(t)
  const store = memoryStore({ now })
  t.teardown(() => store.close())
  const [a, b, c] = ['a', 'b', 'c'].map((node) => {
    const made = makeEngine(t, { store, node, leaseMs: LEASE_MS })
    for (const protocol of [ledger, envelope]) made.engine.register(protocol)
    return made
  }) as [TestEngine, TestEngine, TestEngine] // as many as there are names
  return { store, a, b, c, pass }
}

/** A run of another node, found and read here. */
async function follow ({ engine }: TestEngine, clientId = 'r1'): Promise<{ readonly run: Run, readonly reader: Reader, leave (): void }> {
  const run = await engine.find({}, 'ledger', clientId)
  if (run === undefined) throw new Error('not found')
  const connection = run.connect()
  const reader = new Reader(run, ledgerView('full'), { from: 'start' })
  await turns()
  return { run, reader, leave: () => { connection.close() } }
}

const textsOf = (reader: Reader): string[] => reader.lines.map((line) => {
  const { kind, text } = JSON.parse(line.slice(line.indexOf('{'))) as { kind: string, text?: string }
  return text ?? kind
})

t.test('a reader on another node gets each event when it is stored, and the end', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('one')
  await turns()
  const there = await follow(b)
  t.same(textsOf(there.reader), ['started', 'one'])
  const reads = b.plan.count('log.read')
  for (const text of ['two', 'three', 'four']) {
    await execution.text(text)
    await turns()
    t.equal(textsOf(there.reader).at(-1), text)
  }
  t.equal(b.plan.count('log.read'), reads, 'what is told needs no look into the store')
  execution.finish()
  t.match(await there.run.ended, { state: 'completed' })
  await turns()
  t.same(textsOf(there.reader), ['started', 'one', 'two', 'three', 'four', 'text-end', 'success'])
  t.equal(there.reader.end, 'complete')
  t.same(there.reader.gaps, [])
})

t.test('nothing is published for a run that nobody follows', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('one')
  await b.engine.find({}, 'ledger', 'r1')
  execution.finish()
  await run.ended
  t.equal(a.plan.count('signals.publish'), 0)
  t.equal(b.plan.count('signals.subscribe'), 1, 'its own channel')
})

t.test('what is lost on the way is found at the next beat, in order and once', async (t) => {
  const { a, b, pass } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  const there = await follow(b)
  a.plan.failBefore('signals.publish', { times: Infinity })
  await execution.text('one')
  await turns()
  t.same(textsOf(there.reader), ['started'])
  await pass(LEASE_MS / 3)
  t.same(textsOf(there.reader), ['started', 'one'])
  await execution.text('two')
  await turns()
  a.plan.heal()
  await execution.text('three')
  await turns()
  t.same(textsOf(there.reader), ['started', 'one', 'two', 'three'], 'the hole is filled as soon as it shows')
  t.same(there.reader.gaps, [])
})

t.test('readers stay while the store is away for a moment, and are sent away with their cursor when it stays away', async (t) => {
  const { a, b, pass } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  const there = await follow(b)
  b.plan.failBefore('runs.get', { times: Infinity })
  await execution.text('one')
  await turns()
  t.same(textsOf(there.reader), ['started', 'one'], 'what is told needs no store')
  for (let beats = 0; beats < 3; beats++) await pass(LEASE_MS / 3)
  b.plan.heal()
  await pass(LEASE_MS / 3)
  t.equal(there.reader.end, undefined)
  b.plan.failBefore('runs.get', { times: Infinity })
  for (let beats = 0; beats < 5; beats++) await pass(LEASE_MS / 3)
  t.equal(there.reader.end, 'closed')
  there.leave()
  b.plan.heal()
  const again = await follow(b)
  await execution.text('two')
  await turns()
  t.same(textsOf(again.reader), ['started', 'one', 'two'])
})

t.test('what is larger than a message is announced and read from the store', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  const there = await follow(b)
  await execution.text('x'.repeat(300_000), 'small')
  await turns()
  t.same(textsOf(there.reader).map((text) => text.length), ['started'.length, 300_000, 5])
})

t.test('a run is stopped from another node, running or queued, one or all of its session', async (t) => {
  const { a, b, c } = nodes(t)
  const agent = new ScriptedAgent()
  const first = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const queued = runOf(await b.engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  const third = runOf(await a.engine.start(specOf(agent, { clientId: 'r3', onBusySession: 'queue' })))
  const found = await c.engine.find({}, 'ledger', 'r2')
  if (found === undefined) return t.fail()
  await c.engine.stop(found, { message: 'enough' })
  t.match(await queued.ended, { state: 'cancelled', end: { message: 'enough' } })
  t.equal(found.record.state, 'cancelled')
  t.equal(first.record.state, 'running')
  t.equal(await c.engine.stopSession({ id: 'other' }, 'ledger', 's1'), 'unknown')
  t.equal(await c.engine.stopSession({}, 'envelope', 's1'), 'unknown')
  t.equal(await c.engine.stopSession({}, 'ledger', 's1', 'r3'), 'stopped')
  t.equal((await third.ended).state, 'cancelled')
  t.equal(await c.engine.stopSession({}, 'ledger', 's1'), 'stopped')
  t.equal((await first.ended).state, 'cancelled')
  t.equal(await c.engine.stopSession({}, 'ledger', 's1'), 'unknown')
})

t.test('a stop that is lost on the way is asked for again, and a dead owner is waited for until its run is ended', async (t) => {
  const { a, b, pass } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  b.plan.failBefore('signals.publish', { times: 2 })
  const stopped = b.engine.stop(found)
  await turns()
  t.equal(run.record.state, 'running')
  await pass(LEASE_MS / 3)
  await stopped
  t.equal((await run.ended).state, 'cancelled')

  const second = runOf(await a.engine.start(specOf(agent, { clientId: 'r2' })))
  await agent.called()
  const there = await b.engine.find({}, 'ledger', 'r2')
  if (there === undefined) return t.fail()
  // It hears nothing and renews nothing.
  a.plan.hold('leases.renew')
  b.plan.failBefore('signals.publish', { times: Infinity })
  const late = b.engine.stop(there)
  for (let i = 0; i < 5; i++) await pass(LEASE_MS / 3)
  await late
  t.match(there.record, { state: 'lost' })
  a.plan.heal()
  t.equal((await second.ended).state, 'lost')
})

t.test('a stop that nobody answers is refused in the end', async (t) => {
  const { a, b, pass } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  b.plan.failBefore('signals.publish', { times: Infinity })
  const stopped = b.engine.stop(found)
  const refused = t.rejects(stopped, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  for (let i = 0; i < 11; i++) await pass(1_000)
  await refused
  t.equal((await b.engine.find({}, 'ledger', 'r1'))?.record.state, 'running')
})

t.test('a reader on another node keeps a run going that is interrupted when nobody reads it', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const execution = await agent.called()
  const own = run.connect({ own: true })
  const there = await follow(b)
  own.close()
  await turns()
  await execution.text('one')
  await turns()
  t.same(textsOf(there.reader), ['started', 'one'])
  there.leave()
  t.match(await run.ended, { state: 'cancelled', end: { code: 'disconnect' } })
})

t.test('a node that does not say any more that it reads counts no longer after a lease', async (t) => {
  const { a, b, store, pass } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent, { onDisconnect: { graceMs: 500 } })))
  await agent.called()
  const own = run.connect({ own: true })
  await follow(b)
  own.close()
  await pass(1_000)
  t.equal(run.record.state, 'running')
  for (const operation of ['signals.publish', 'presence.enter', 'presence.leave'] as const) b.plan.failBefore(operation, { times: Infinity })
  for (let i = 0; i < 6; i++) await pass(1_000)
  t.match(await run.ended, { state: 'cancelled', end: { code: 'disconnect' } })
  t.same(await store.presence.nodes(run.record.key), [])
})

t.test('a reader whose word did not come through counts by its entry in the store', async (t) => {
  const { a, b, pass } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const execution = await agent.called()
  const own = run.connect({ own: true })
  b.plan.failBefore('signals.publish', { times: 1 })
  const there = await follow(b)
  own.close()
  await turns()
  t.equal(run.record.state, 'running')
  await execution.text('one')
  await turns()
  t.same(textsOf(there.reader), ['started', 'one'], 'and is told from then on')
  there.leave()
  await pass(1)
  t.equal((await run.ended).state, 'cancelled')
})

t.test('readers of a waiting run stay where they are while it goes on elsewhere, and back', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  const here = run.connect()
  const reader = new Reader(run, ledgerView('status'), { from: 'start' })
  await pause(agent, run, 'c1')
  await turns()
  const there = await follow(b)
  const other = new ScriptedAgent({ resume: true })
  const resumed = runOf(await b.engine.resume(there.run, { ...specOf(other), decisions: [approve('c1')] }))
  const execution = await other.called()
  await execution.text('there')
  await turns()
  t.same(textsOf(reader), ['started', 'call', 'asks', 'started'], 'status only')
  t.equal(run.record.state, 'running')
  t.same(textsOf(there.reader), ['started', 'call', 'asks', 'started', 'there'])
  const ended = run.settled()
  await execution.say(...askFor('c2'))
  execution.finish()
  t.equal((await ended).state, 'waiting')
  await turns()
  t.same(textsOf(reader), ['started', 'call', 'asks', 'started', 'call', 'asks'])

  const again = new ScriptedAgent({ resume: true })
  const back = runOf(await a.engine.resume(run, { ...specOf(again), decisions: [approve('c2')] }))
  const last = await again.called()
  await last.text('here')
  await turns()
  t.same(textsOf(there.reader).slice(-2), ['started', 'here'])
  last.finish()
  for (const each of [run, there.run, resumed, back]) t.equal((await each.ended).state, 'completed')
  await turns()
  t.same(textsOf(reader).slice(-2), ['started', 'success'])
  t.same([reader.end, there.reader.end], ['complete', 'complete'])
  t.same(kindsOf(back), kindsOf(there.run))
  here.close()
  there.leave()
})

t.test('of two nodes that answer at once one goes on, and the readers of both follow it', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  run.connect()
  await pause(agent, run, 'c1')
  const there = await follow(b)
  const agents = [new ScriptedAgent({ resume: true }), new ScriptedAgent({ resume: true })] as const
  const results = await Promise.all([
    a.engine.resume(run, { ...specOf(agents[0]), decisions: [approve('c1')] }),
    b.engine.resume(there.run, { ...specOf(agents[1]), decisions: [approve('c1')] })
  ])
  await turns()
  const kinds = results.map(({ kind }) => kind)
  t.same([...kinds].sort(), ['not-waiting', 'resumed'])
  const winner = agents[kinds.indexOf('resumed')]
  t.same(agents.map(({ executions }) => executions.length).sort(), [0, 1])
  const execution = await (winner as ScriptedAgent).called()
  execution.finish()
  for (const each of [run, there.run]) t.equal((await each.ended).state, 'completed')
})

t.test('a run that waits for its session on another node begins as soon as the one before it is over', async (t) => {
  const { a, b } = nodes(t)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const first = await agent.called()
  const other = new ScriptedAgent()
  const second = runOf(await b.engine.start(specOf(other, { clientId: 'r2', onBusySession: 'queue' })))
  await turns()
  t.equal(other.executions.length, 0)
  first.finish()
  const execution = await other.called()
  execution.finish()
  t.equal((await second.ended).state, 'completed')
})

t.test('a run supersedes those that other nodes execute or queue', async (t) => {
  const { a, b, c } = nodes(t)
  const agent = new ScriptedAgent()
  const first = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const second = runOf(await b.engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  const other = new ScriptedAgent()
  const third = runOf(await c.engine.start(specOf(other, { clientId: 'r3', onBusySession: 'supersede' })))
  t.match(await first.ended, { state: 'cancelled', end: { code: 'superseded' } })
  t.match(await second.ended, { state: 'cancelled', end: { code: 'superseded' } })
  const execution = await other.called()
  execution.finish()
  t.equal((await third.ended).state, 'completed')
})

t.test('readers on every node are told the end of a run whose owner is gone', async (t) => {
  const { a, b, c, pass } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('one')
  const readers = [await follow(b), await follow(c)]
  a.plan.hold('leases.renew')
  a.plan.failBefore('leases.expired', { times: Infinity })
  for (let i = 0; i < 5; i++) await pass(1_000)
  for (const { run: there, reader } of readers) {
    t.match(await there.ended, { state: 'lost' })
    t.same(textsOf(reader), ['started', 'one', 'error'])
    t.equal(reader.end, 'complete')
  }
  a.plan.heal()
  t.equal((await run.ended).state, 'lost')
})

t.test('following ends with the last reader, and leaves nothing behind', async (t) => {
  const { a, b, store } = nodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  const first = await follow(b)
  const second = await follow(b)
  t.equal(first.run, second.run)
  t.same(await store.presence.nodes(run.record.key), ['b'])
  first.leave()
  await turns()
  t.same(await store.presence.nodes(run.record.key), ['b'])
  second.leave()
  second.leave()
  await turns()
  t.same(await store.presence.nodes(run.record.key), [])
  const published = a.plan.count('signals.publish')
  await execution.text('one')
  await turns()
  t.equal(a.plan.count('signals.publish'), published)
  t.equal(first.run.topic.last, 1, 'nothing is fetched that nobody reads')
  const third = await follow(b)
  t.same(textsOf(third.reader), ['started', 'one'])
  execution.finish()
  await third.run.ended
})

t.test('who waits for a run of another node has its end although its log here was dropped to make room', async (t) => {
  const { a, store, pass } = nodes(t)
  const bus = new EventBus()
  t.teardown(() => { bus.close() })
  const { engine } = makeEngine(t, { store, node: 'd', leaseMs: LEASE_MS, bus })
  engine.register(ledger)
  const agent = new ScriptedAgent()
  runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('one')
  await turns()
  const run = await engine.find({}, 'ledger', 'r1')
  if (run === undefined) return t.fail()
  const connection = run.connect()
  await turns()
  bus.drop(run.topic.key)
  execution.finish()
  await pass(LEASE_MS / 3)
  t.match(await run.settled(), { state: 'completed' })
  t.match(await run.ended, { state: 'completed' })
  connection.close()
})
