import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { agentOf, approve, askFor, makeEngine, makePair, pause, Reader, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('every run has its terminal, and every reader its end, when the engine is closed', async (t) => {
  const bus = new EventBus()
  t.teardown(() => { bus.close() })
  const { engine, store } = makeEngine(t, { bus })
  const agent = new ScriptedAgent()
  const running = runOf(await engine.start(specOf(agent)))
  const queued = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  const waiting = runOf(await engine.start(specOf(agent, { clientId: 'r3', session: 's3' })))
  const executions = [await agent.called(), await agent.called()]
  const execution = executions.find(({ context }) => context.runId === 'r1')
  const asking = executions.find(({ context }) => context.runId === 'r3')
  await asking?.say(...askFor('c1'))
  asking?.finish()
  await waiting.settled()
  await execution?.text('x')
  const reader = new Reader(running, ledgerView('full'))
  const closed = engine.close()
  t.equal(engine.close(), closed, 'closing again is the same closing')
  await closed
  t.same(kindsOf(running), ['started', 'text', 'text-end', 'error'])
  t.match(running.record, { state: 'cancelled', end: { kind: 'interrupted', code: 'shutdown' } })
  t.match(queued.record, { state: 'cancelled', end: { kind: 'interrupted', code: 'shutdown' } })
  t.equal(waiting.record.state, 'waiting')
  t.equal((await store.runs.get(waiting.record.key))?.state, 'waiting', 'waiting runs stay as they are')
  t.equal(reader.end, 'complete')
  t.equal(reader.lines.length, 4)
  t.match(execution?.context.signal.reason, { source: 'system' })
})

t.test('an agent that does not settle gets half of the time', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { cancelGraceMs: 60_000 })))
  const execution = await agent.called()
  execution.isDeaf = true
  await engine.close({ timeoutMs: 40 })
  t.match(run.record, { state: 'cancelled', end: { code: 'shutdown' } })
})

t.test('closing ends in time although the store is gone, and says nothing untrue', async (t) => {
  const base = memoryStore()
  t.teardown(() => base.close())
  const bus = new EventBus()
  t.teardown(() => { bus.close() })
  const { engine, plan } = makeEngine(t, { bus, store: base })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last' })
  await agent.called()
  await turn()
  plan.failBefore('runs.commit', { times: Infinity })
  await engine.close({ timeoutMs: 20 })
  plan.heal()
  await turn()
  t.same(own.lines.length, 1)
  t.equal((await run.ended).state, 'lost')
  t.equal(own.lines.length, 1)
  const other = makeEngine(t, { store: base })
  t.match(await base.leases.takeover(run.record.key, { node: 'x', op: 'x', ms: 1_000 }), { kind: 'taken' }, 'others may end it at once')
  await other.engine.close()
})

t.test('a lease that can not be given back is logged', async (t) => {
  const warnings: string[] = []
  const logger = { debug () {}, info () {}, warn: (_fields: object, sentence: string) => { warnings.push(sentence) }, error () {}, child: () => logger }
  const { engine, plan } = makeEngine(t, { logger })
  const agent = new ScriptedAgent()
  runOf(await engine.start(specOf(agent)))
  await agent.called()
  plan.failBefore('runs.commit', { times: Infinity })
  plan.failBefore('leases.release', { times: Infinity })
  await engine.close({ timeoutMs: 20 })
  t.ok(warnings.includes('a lease could not be given back; it runs out by itself'))
})

t.test('a start that is under way is waited for', async (t) => {
  const { engine, plan } = makeEngine(t)
  const hold = plan.hold('runs.create')
  const start = engine.start(specOf(new ScriptedAgent()))
  await hold.arrived
  const closed = engine.close()
  hold.release()
  const run = runOf(await start)
  await closed
  t.match(run.record, { state: 'cancelled', end: { code: 'shutdown' } })
})

t.test('a start that fails meanwhile does not hold the closing up', async (t) => {
  const { engine, plan } = makeEngine(t)
  const hold = plan.hold('index.add')
  const start = engine.start(specOf(new ScriptedAgent()))
  await hold.arrived
  const closed = engine.close()
  plan.failBefore('runs.create')
  hold.release()
  await t.rejects(start, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  await closed
})

t.test('an instance that was made for a run is closed once, whether its run waits, ends, or is given up', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agents = [new ScriptedAgent(), new ScriptedAgent(), new ScriptedAgent()]
  const [waits, runs, stays] = await Promise.all(agents.map(async (agent, index) =>
    runOf(await engine.start(specOf(() => agent, { clientId: `r${index}`, session: `s${index}` })))))
  const [waiting, running, staying] = agents
  if (waits === undefined || runs === undefined || stays === undefined || waiting === undefined || running === undefined || staying === undefined) return t.fail()
  await pause(waiting, waits)
  // The last one goes on from a pause with the instance that was kept, and can not be ended.
  await pause(staying, stays)
  const { agent: _agent, ...rest } = specOf(staying)
  runOf(await engine.resume(stays, { ...rest, decisions: [approve('c1')] }))
  await Promise.all([running.called(), staying.called()])
  await turn()
  t.same(agents.map(({ closed }) => closed), [0, 0, 0])
  plan.failBefore('runs.commit', { skip: 1, times: Infinity })
  await engine.close({ timeoutMs: 20 })
  plan.heal()
  await turn()
  t.same(agents.map(({ closed }) => closed), [1, 1, 1])
  t.equal((await store.runs.get(waits.record.key))?.state, 'waiting')
})

t.test('an instance that closes without end holds the closing up no longer than allowed, and one that fails is logged', async (t) => {
  const warnings: string[] = []
  const logger = { debug () {}, info () {}, warn: (_fields: object, sentence: string) => { warnings.push(sentence) }, error () {}, child: () => logger }
  const { engine } = makeEngine(t, { logger })
  for (const [index, close] of [() => new Promise<void>(() => {}), () => Promise.reject(new Error('broken'))].entries()) {
    const agent = new ScriptedAgent()
    const made = agentOf((input, context) => agent.stream(input, context), { close })
    const run = runOf(await engine.start(specOf(() => made, { clientId: `r${index}`, session: `s${index}` })))
    await pause(agent, run)
  }
  await engine.close({ timeoutMs: 20 })
  t.same(warnings, ['closing an agent failed'])
})

t.test('an instance that is kept for a run is closed when another node goes on with it', async (t) => {
  const { a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(() => agent)))
  await pause(agent, run)
  const there = await b.engine.find({}, 'ledger', 'r1')
  if (there === undefined) return t.fail()
  const other = new ScriptedAgent()
  const resumed = runOf(await b.engine.resume(there, { ...specOf(other), decisions: [approve('c1')] }))
  await pause(other, resumed, 'c2')
  t.equal(agent.closed, 0)
  // Its node may still be asked to go on, with what it has kept.
  const { agent: _agent, ...rest } = specOf(agent)
  const back = runOf(await a.engine.resume(run, { ...rest, decisions: [approve('c2')] }))
  t.not(back, run)
  await pause(agent, back, 'c3')
  await turn()
  t.equal(agent.closed, 0)
  const again = runOf(await b.engine.resume(there, { ...specOf(other), decisions: [approve('c3')] }))
  const last = await other.called()
  await a.engine.find({}, 'ledger', 'r1')
  await turn()
  t.equal(agent.closed, 1)
  last.finish()
  await again.ended
})

t.test('what runs may finish before it is interrupted, where that is asked for', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const done = runOf(await engine.start(specOf(agent)))
  const queued = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  const endless = runOf(await engine.start(specOf(agent, { clientId: 'r3', session: 's3' })))
  const [first] = [await agent.called(), await agent.called()]
  const closing = engine.close({ timeoutMs: 400, running: 'finish' })
  t.match(await engine.start(specOf(agent, { clientId: 'r4', session: 's4' })), { kind: 'closing' })
  await first?.text('x')
  t.equal(first?.context.signal.aborted, false)
  first?.finish()
  t.equal((await done.ended).state, 'completed')
  const second = await agent.called()
  second.finish()
  t.equal((await queued.ended).state, 'completed')
  await closing
  t.match(endless.record, { state: 'cancelled', end: { code: 'shutdown' } })
})

t.test('closing waits no longer than for the last run to finish', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  const closing = engine.close({ timeoutMs: 2_000_000, running: 'finish' })
  execution.finish()
  await closing
  t.equal(run.record.state, 'completed')
})

t.test('a drained engine refuses starts and resumes, and lets the rest go on', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const waiting = runOf(await engine.start(specOf(agent)))
  await pause(agent, waiting)
  const run = runOf(await engine.start(specOf(agent, { session: 's2', clientId: 'r2' })))
  const execution = await agent.called()
  t.equal(engine.isClosing, false)
  engine.drain()
  t.equal(engine.isClosing, true)
  t.same(await engine.start(specOf(agent, { session: 's3' })), { kind: 'closing' })
  t.same(await engine.resume(waiting, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'closing' })
  await execution.text('x')
  execution.finish()
  t.equal((await run.ended).state, 'completed')
})

t.test('a census counts what runs, waits in a queue, and waits for an answer', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  t.same(engine.census(), { pending: 0, running: 0, waiting: 0, longestQueue: 0, logBytes: 0 })
  await pause(agent, runOf(await engine.start(specOf(agent, { session: 'waiting' }))))
  for (const session of ['a', 'a', 'a', 'b', 'b', 'c']) await engine.start(specOf(agent, { session, clientId: session, onBusySession: 'queue' }))
  for (let i = 0; i < 3; i++) await agent.called()
  const { logBytes, ...runs } = engine.census()
  t.same(runs, { pending: 3, running: 3, waiting: 1, longestQueue: 2 })
  t.ok(logBytes > 100 && logBytes < 10_000, `${logBytes}`)
})
