import t, { type Test } from 'tap'
import { memoryStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { ledger } from '../../helpers/ledger-protocol.ts'
import { approve, makeEngine, pause, runOf, type TestEngine } from '../../helpers/run-engine.ts'
import { linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

const LEASE_MS = 15_000

/** An engine in a time of its own. */
function makeWorld (t: Test): TestEngine & { readonly clock: VirtualClock, readonly agent: ScriptedAgent } {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  return { ...makeEngine(t, { leaseMs: LEASE_MS, storeTimeoutMs: 500 }), clock, agent: new ScriptedAgent() }
}

t.test('a run whose end was stored without anybody knowing keeps its session no longer than a lease', async (t) => {
  const { engine, store, plan, clock, agent } = makeWorld(t)
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  plan.failAfter('runs.commit', { times: Infinity })
  execution.finish()
  t.match(await clock.until(run.ended, 10_000, 'the end'), { end: { code: 'STORE_UNAVAILABLE' } })
  t.match(await store.runs.get(run.record.key), { state: 'completed' })
  plan.heal()
  await clock.advance(2 * LEASE_MS)
  const next = runOf(await engine.start(specOf(agent, { clientId: 'r2' })))
  t.equal(next.record.state, 'running')
})

t.test('an answer whose claim was made without anybody knowing can be given again', async (t) => {
  const { engine, plan, clock, agent } = makeWorld(t)
  for (const protocol of [ledger, envelope]) {
    const spec = specOf(agent, { protocol, clientId: protocol.name, session: protocol.name, holdGateWhileWaiting: false })
    const run = runOf(await engine.start(spec))
    await pause(agent, run)
    const answer = async () => protocol === ledger
      ? await engine.resume(run, { ...spec, decisions: [approve('c1')] })
      : await engine.start({ ...spec, clientId: 'answer', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })
    plan.failAfter('interrupts.claim')
    await t.rejects(answer(), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
    const again = runOf(await answer())
    const resumed = await agent.called()
    resumed.finish()
    t.match(await clock.until(again.ended, 1_000, 'the end'), { state: 'completed' })
  }
})

t.test('a waiting run whose lease was given without anybody knowing can be answered, and stopped', async (t) => {
  const { engine, plan, clock, agent } = makeWorld(t)
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  plan.failAfter('leases.acquire')
  runOf(await clock.until(engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), 1_000, 'the answer'))
  await pause(agent, run, 'c2')
  plan.failAfter('leases.acquire')
  await clock.until(engine.stop(run), 1_000, 'the stop')
  t.match(run.record, { state: 'cancelled', fence: 3 })
})

t.test('an answer that nobody can say was taken is never given again: its run ends with its lease', async (t) => {
  const { engine, store, plan, clock, agent } = makeWorld(t)
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  plan.failAfter('interrupts.claim')
  plan.failBefore('interrupts.release', { times: Infinity })
  const answer = () => engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  await t.rejects(clock.until(answer(), 2_000, 'the answer'), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  t.match(await answer(), { kind: 'interrupts', problem: { kind: 'taken' } })
  await clock.advance(2 * LEASE_MS)
  t.match(await store.runs.get(run.record.key), { state: 'lost', end: { code: 'NODE_LOST' } })
  t.match(await store.interrupts.list(run.record.key), [{ id: 'ask-c1', state: 'unknown' }])
})

t.test('the same where the answer is a run of its own, which ends with the lease as well', async (t) => {
  const { engine, store, plan, clock, agent } = makeWorld(t)
  const spec = specOf(agent, { protocol: envelope, holdGateWhileWaiting: false })
  const run = runOf(await engine.start(spec))
  await pause(agent, run)
  plan.failAfter('interrupts.claim')
  plan.failBefore('interrupts.release', { times: Infinity })
  await clock.advance(1)
  const answering = engine.start({ ...spec, clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })
  await t.rejects(clock.until(answering, 2_000, 'the answer'), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  await clock.advance(2 * LEASE_MS)
  t.match(await store.interrupts.list(run.record.key), [{ id: 'int:c1', state: 'unknown' }])
  t.match((await store.index.list({}, { limit: 10 })).runs, [{ clientId: 'r2', state: 'lost' }, { clientId: 'r1' }])
})

t.test('a log that has ended with its pause gets no second end when the node dies that it waited on', async (t) => {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const store = memoryStore()
  const agent = new ScriptedAgent()
  const first = makeEngine(t, { store, leaseMs: LEASE_MS })
  const run = runOf(await first.engine.start(specOf(agent, { protocol: envelope, holdGateWhileWaiting: false })))
  await pause(agent, run)
  const told = linesOf(run)
  await first.engine.close()
  const second = makeEngine(t, { store, leaseMs: LEASE_MS })
  second.engine.register(envelope)
  await clock.advance(3 * LEASE_MS)
  t.match(await store.runs.get(run.record.key), { state: 'lost', end: { code: 'NODE_LOST' } })
  const found = await second.engine.find({}, 'envelope', 'r1', 's1')
  t.same(found === undefined ? undefined : linesOf(found), told)
  t.match(await store.interrupts.list(run.record.key), [{ id: 'int:c1', state: 'closed' }])
})
