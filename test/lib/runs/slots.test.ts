import { mock } from 'node:test'
import t from 'tap'
import { memoryStore, type Owner } from '../../../lib/stores/index.ts'
import { ledger } from '../../helpers/ledger-protocol.ts'
import { approve, makeEngine, pause, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

const LIMIT = { code: 'AGT_ERR_RUN_LIMIT', statusCode: 429 }

t.test('an owner has so many runs under way and no more, whatever their sessions, and each owner has its own', async (t) => {
  const { engine } = makeEngine(t, { limits: { maxRuns: 2 } })
  const agent = new ScriptedAgent()
  const start = (name: string, owner: Owner = { id: 'ann' }) => engine.start(specOf(agent, { owner, session: name, clientId: name }))
  const first = runOf(await start('a'))
  await start('b')
  await t.rejects(start('c'), LIMIT)
  t.equal((await start('c', { id: 'bob' })).kind, 'started')
  t.equal((await start('c', { tenant: 'x', id: 'ann' })).kind, 'started')
  t.equal((await start('c', {})).kind, 'started');
  (await agent.called()).finish()
  await first.ended
  t.equal((await start('d')).kind, 'started', 'the slot is free when the end is told')
  await t.rejects(start('e'), LIMIT)
  t.equal(agent.executions.length, 6, 'nothing was started for those that were refused')
})

t.test('a start that finds its run, a busy session or open questions asks for no slot', async (t) => {
  const { engine, plan } = makeEngine(t, { limits: { maxRuns: 1 } })
  const agent = new ScriptedAgent()
  const idempotency = { key: 'k', fingerprint: 'f' }
  const run = runOf(await engine.start(specOf(agent, { idempotency })))
  t.match(await engine.start(specOf(agent, { idempotency })), { kind: 'existing', run })
  t.equal((await engine.start(specOf(agent, { clientId: 'other' }))).kind, 'busy')
  t.equal((await engine.start(specOf(agent, { session: 's2', clientId: 'other', resumes: { interrupts: ['x'], decisions: [] } }))).kind, 'interrupts')
  t.equal(plan.count('gates.enter'), 3, 'two for the sessions, one for the slot')
})

t.test('each end gives the slot back: a return, a throw, a stop, a lost caller, a failed start, a store that failed', async (t) => {
  const { engine, plan } = makeEngine(t, { limits: { maxRuns: 1 } })
  const agent = new ScriptedAgent()
  let count = 0
  const start = async () => runOf(await engine.start(specOf(agent, { session: `s${++count}`, clientId: `r${count}`, onDisconnect: 'interrupt' })))
  let run = await start();
  (await agent.called()).finish()
  await run.ended
  run = await start();
  (await agent.called()).fail(new Error('x'))
  await run.ended
  run = await start()
  await engine.stop(run)
  run = await start()
  run.connect({ own: true }).close()
  await run.ended
  plan.failBefore('runs.create')
  await t.rejects(start(), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  plan.failAfter('gates.enter', { skip: 1 })
  await t.rejects(start(), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  await turn()
  run = await start()
  await t.rejects(start(), LIMIT)
  await engine.stop(run)
})

t.test('a run that waits holds no slot, and asks for one when it goes on', async (t) => {
  const { engine } = makeEngine(t, { limits: { maxRuns: 1 } })
  const agent = new ScriptedAgent()
  const waiting = runOf(await engine.start(specOf(agent)))
  await pause(agent, waiting)
  const other = runOf(await engine.start(specOf(agent, { session: 's2', clientId: 'r2' })))
  const resume = () => engine.resume(waiting, { ...specOf(agent), decisions: [approve('c1')] })
  await t.rejects(resume(), LIMIT)
  t.equal(waiting.record.state, 'waiting')
  await engine.stop(other)
  const results = await Promise.allSettled([resume(), resume()])
  t.equal(results.filter((result) => result.status === 'fulfilled' && result.value.kind === 'resumed').length, 1)
  await t.rejects(engine.start(specOf(agent, { session: 's3', clientId: 'r3' })), LIMIT, 'the loser gives back its own slot alone')
  await engine.stop(waiting)
  t.equal((await engine.start(specOf(agent, { session: 's3', clientId: 'r3' }))).kind, 'started')
})

t.test('nodes that share a store share the limit, and the slots of a dead one are free within a lease', async (t) => {
  let now = 1_000_000
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.intercept(performance, 'now', { value: () => now })
  t.teardown(() => { mock.timers.reset() })
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms; step += 500) {
      now += 500
      mock.timers.tick(500)
      for (let i = 0; i < 20; i++) await turn()
    }
  }
  const store = memoryStore({ now: () => now })
  t.teardown(() => store.close())
  const [a, b] = [makeEngine(t, { store, leaseMs: 3_000, limits: { maxRuns: 2 } }), makeEngine(t, { store, leaseMs: 3_000, limits: { maxRuns: 2 } })]
  const agent = new ScriptedAgent()
  const start = (engine: typeof a, name: string) => engine.engine.start(specOf(agent, { session: name, clientId: name }))
  await start(a, 'a1')
  await start(b, 'b1')
  await t.rejects(start(a, 'a2'), LIMIT)
  await t.rejects(start(b, 'b2'), LIMIT)
  await pass(9_000)
  await t.rejects(start(b, 'b3'), LIMIT, 'both are renewed')
  const outage = a.plan.hold('*')
  await pass(4_000)
  t.equal((await start(b, 'b4')).kind, 'started')
  await t.rejects(start(b, 'b5'), LIMIT)
  outage.release()
})

t.test('a node whose run was taken from it holds its slot no longer', async (t) => {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const store = memoryStore({ now: () => 1_000_000 + clock.now })
  t.teardown(() => store.close())
  const [a, b] = [makeEngine(t, { store, leaseMs: 3_000, limits: { maxRuns: 1 } }), makeEngine(t, { store, leaseMs: 3_000, limits: { maxRuns: 1 } })]
  b.engine.register(ledger)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  // Nobody else asks for a slot, so nobody passes over the ticket that has run out: it could be renewed for ever.
  const outage = a.plan.hold('*')
  await clock.advance(6_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'lost')
  outage.release()
  await clock.until(run.ended, 10_000, 'giving up')
  await clock.advance(10_000)
  t.equal((await b.engine.start(specOf(agent, { session: 'b' }))).kind, 'started')
})

t.test('no session that a client names is the queue of its slots', async (t) => {
  const { engine, store } = makeEngine(t, { limits: { maxRuns: 1 } })
  const agent = new ScriptedAgent()
  for (const session of ['runs', 'limits [null,null]', 'limits [null,null]runs']) {
    const run = runOf(await engine.start(specOf(agent, { session, clientId: session })))
    t.match(await store.gates.holder({}, session), { id: run.record.key.id })
    await t.rejects(engine.start(specOf(agent, { session: 'other', clientId: 'other' })), LIMIT)
    await engine.stop(run)
  }
})

t.test('giving a slot back asks nothing of those who hold one', async (t) => {
  const { engine, plan } = makeEngine(t, { limits: { maxRuns: 50 } })
  const agent = new ScriptedAgent()
  const runs = []
  for (let index = 0; index < 20; index++) runs.push(runOf(await engine.start(specOf(agent, { session: `s${index}`, clientId: `r${index}` }))))
  const before = plan.count('gates.renew')
  for (const run of runs) await engine.stop(run)
  t.equal(plan.count('gates.renew') - before, 0)
})

t.test('without a limit the store is asked nothing for it', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  await engine.stop(runOf(await engine.start(specOf(agent))))
  t.same([plan.count('gates.enter'), plan.count('gates.leave'), plan.count('index.list')], [1, 1, 0])
})
