import t from 'tap'
import { type AgentEventInit } from '../../../lib/agent/index.ts'
import { OUTCOME_UNKNOWN } from '../../../lib/runs/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, askFor, deny, makeEngine, pause, Reader, resultOf, runOf, type TestEngine, turn } from '../../helpers/run-engine.ts'
import { kindsOf, linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { type Run, type RunSpec } from '../../../lib/runs/index.ts'

async function paused ({ engine }: TestEngine, agent: ScriptedAgent, overrides: Partial<RunSpec> = {}, events: AgentEventInit[] = askFor('c1')): Promise<Run> {
  const run = runOf(await engine.start(specOf(agent, overrides)))
  const execution = await agent.called()
  await execution.say(...events)
  execution.finish()
  await run.settled()
  return run
}

t.test('a pause is a record of what is waited for, and the run goes on in the same log', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent, {}, [
    { type: 'TOOL_CALL_START', toolCallId: 'free', toolCallName: 'look' }, { type: 'TOOL_CALL_END', toolCallId: 'free' }, ...askFor('c1', 'c2'),
    { type: 'REQUIRE_INPUT', requests: [{ id: 'q1', reason: 'input_required', expiresAt: '2100-01-01T00:00:00Z' }] }
  ])
  t.same([run.record.state, run.record.end], ['waiting', undefined])
  const open = await engine.openInterrupts({}, 'ledger', 's1')
  t.match(open, [
    { id: 'ask-c1', kind: 'confirm', state: 'open', session: 's1', pending: { kind: 'confirm', toolCall: { id: 'c1', name: 'delete', input: { path: '/tmp/a' } }, openCalls: ['free', 'c1', 'c2'] } },
    { id: 'ask-c2', kind: 'confirm' },
    { id: 'ask-q1', kind: 'input', expiresAt: Date.parse('2100-01-01T00:00:00Z') }
  ])
  const decisions = [approve('c1'), deny('c2'), { kind: 'input' as const, requestId: 'q1', status: 'resolved' as const, payload: 'yes' }]
  const result = await engine.resume(run, { ...specOf(agent), input: { messages: [], history: 'append', resume: decisions }, decisions })
  t.same(result, { kind: 'resumed', run })
  const second = await agent.called()
  t.same(second.input.resume, decisions)
  t.equal(run.record.state, 'running')
  await second.say(...resultOf('c1'))
  t.match((await store.interrupts.list(run.record.key)).map(({ state, outcome }) => [state, outcome]), [['done', { state: 'success' }], ['claimed', undefined], ['claimed', undefined]])
  await second.say(...resultOf('free'))
  second.finish()
  const record = await run.ended
  t.equal(record.state, 'completed')
  t.same((await store.interrupts.list(run.record.key)).map(({ outcome }) => outcome), [{ state: 'success' }, { state: 'consumed' }, { state: 'consumed' }])
  t.same(kindsOf(run), ['started', 'call', 'call', 'call', 'asks', 'started', 'result', 'result', 'success'], 'known calls are not announced again')
  t.same(linesOf(run).filter((line) => (line as { kind: string }).kind === 'started').map((line) => (line as { execution: number }).execution), [0, 1])
  const stored = await store.log.read(record.key, 0, 100)
  t.same(stored?.events.map(({ seq }) => seq), run.topic.read(0).map(({ seq }) => seq), 'one dense sequence')
  t.same(record.firstSeqByFence.map(([fence]) => fence), [1, 2])
})

t.test('readers stay over the pause', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await setUp.engine.start(specOf(agent)))
  const reader = new Reader(run, ledgerView('status'))
  await pause(agent, run)
  await setUp.engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  second.finish()
  await reader.until(({ end }) => end === 'complete')
  t.same(reader.lines.map((text) => text.split(' ').slice(0, 2).join('>')).length, 5)
})

t.test('a run can pause several times', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  for (const id of ['c2', 'c3']) {
    await setUp.engine.resume(run, { ...specOf(agent), decisions: [approve(id === 'c2' ? 'c1' : 'c2')] })
    const execution = await agent.called()
    await execution.say(...askFor(id))
    execution.finish()
    await run.settled()
    t.same((await setUp.engine.openInterrupts({}, 'ledger', 's1')).map(({ pending }) => pending.kind === 'input' || pending.toolCall.id), [id])
  }
  t.same(linesOf(run).flatMap((line) => (line as { execution?: number }).execution ?? []), [0, 1, 2])
  await setUp.engine.stop(run)
})

t.test('two answers at the same moment: one goes on, the tool runs once', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  const results = await Promise.all([approve('c1'), deny('c1'), approve('c1')].map((decision) => engine.resume(run, { ...specOf(agent), decisions: [decision] })))
  t.same(results.map(({ kind }) => kind).sort(), ['not-waiting', 'not-waiting', 'resumed'])
  const second = await agent.called()
  second.finish()
  await run.ended
  t.equal(agent.executions.length, 2)
  t.same(await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'not-waiting', run })
})

t.test('answers that do not fit are refused, and the run waits on', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent, {}, askFor('c1', 'c2'))
  t.match(await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'interrupts', problem: { kind: 'mismatch', missing: ['ask-c2'] } })
  t.match(await engine.resume(run, { ...specOf(agent), decisions: [] }), { kind: 'interrupts', problem: { kind: 'mismatch', missing: ['ask-c1', 'ask-c2'] } })
  t.equal((await engine.resume(run, { ...specOf(agent), decisions: [approve('c1'), deny('c2')] })).kind, 'resumed')
  await engine.stop(run)
})

t.test('a run that runs does not wait', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  t.same(await engine.resume(run, { ...specOf(agent), decisions: [] }), { kind: 'not-waiting', run })
  await engine.stop(run)
})

t.test('an expired interrupt can only be cancelled', async (t) => {
  let now = Date.now()
  const setUp = makeEngine(t, { memory: { now: () => now } })
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent, { interruptTtlMs: 1_000 })
  now += 2_000
  t.match(await engine.openInterrupts({}, 'ledger', 's1'), [{ state: 'expired' }])
  t.match(await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'interrupts', problem: { kind: 'expired', ids: ['ask-c1'] } })
  t.match(await engine.resume(run, { ...specOf(agent), decisions: [{ kind: 'result', toolCallId: 'c1', output: [], state: 'success' }] }), { kind: 'interrupts', problem: { kind: 'expired' } })
  t.equal((await engine.resume(run, { ...specOf(agent), decisions: [deny('c1')] })).kind, 'resumed')
  await engine.stop(run)
})

t.test('the earlier of both expiries counts', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  const soon = new Date(Date.now() + 60_000).toISOString()
  await paused(setUp, agent, { interruptTtlMs: 3_600_000 }, [
    { type: 'REQUIRE_INPUT', requests: [{ id: 'q1', reason: 'r', expiresAt: soon }, { id: 'q2', reason: 'r', expiresAt: 'never' }] },
    { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [{ type: 'tool_use', id: 'x1', name: 'n', input: {}, metadata: { expiresAt: soon } }] }
  ])
  const open = await setUp.engine.openInterrupts({}, 'ledger', 's1')
  t.equal(open.find(({ id }) => id === 'ask-q1')?.expiresAt, Date.parse(soon))
  t.equal(open.find(({ id }) => id === 'ask-x1')?.expiresAt, Date.parse(soon))
  t.ok((open.find(({ id }) => id === 'ask-q2')?.expiresAt ?? 0) > Date.now() + 3_000_000)
})

t.test('an approved call whose outcome nobody knows is never run again', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent, {}, askFor('c1', 'c2'))
  await engine.resume(run, { ...specOf(agent), decisions: [approve('c1'), approve('c2')] })
  const second = await agent.called()
  await second.say(...resultOf('c1'))
  second.fail(new Error('in the middle'))
  t.equal((await run.ended).state, 'failed')
  t.same((await store.interrupts.list(run.record.key)).map(({ state, outcome }) => [state, outcome]), [['done', { state: 'success' }], ['done', { state: OUTCOME_UNKNOWN }]])
  t.same(await engine.openInterrupts({}, 'ledger', 's1'), [])
})

t.test('a result that is made up while ending is no outcome', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  await second.say({ type: 'TOOL_RESULT_START', toolCallId: 'c1' })
  await engine.stop(run)
  t.same((await store.interrupts.list(run.record.key)).map(({ outcome }) => outcome), [{ state: OUTCOME_UNKNOWN }])
})

t.test('the outcome is stored before the agent is asked for its next event', async (t) => {
  const setUp = makeEngine(t)
  const { engine, plan } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  await second.asked()
  const hold = plan.hold('interrupts.finish')
  const said = second.say(...resultOf('c1'))
  await hold.arrived
  await turn()
  const { pulls } = second
  await turn()
  t.equal(second.pulls, pulls)
  hold.release()
  await said
  t.equal(second.pulls, pulls + 1)
  second.finish()
  await run.ended
})

t.test('an outcome that can not be stored ends the run without a promise', async (t) => {
  const setUp = makeEngine(t, { storeTimeoutMs: 20 })
  const { engine, plan } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  const second = await agent.called()
  plan.failBefore('interrupts.finish', { times: Infinity })
  second.say(...resultOf('c1')).catch(() => {})
  t.match(await run.ended, { end: { code: 'STORE_UNAVAILABLE' } })
})

t.test('a waiting run is stopped, with its interrupts and its session', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  await engine.stop(run)
  t.equal(run.record.state, 'cancelled')
  t.same(kindsOf(run), ['started', 'call', 'asks', 'started', 'cancelled'])
  t.same((await store.interrupts.list(run.record.key)).map(({ state }) => state), ['closed'])
  t.equal((await engine.start(specOf(agent, { clientId: 'r2' }))).kind, 'started')
})

t.test('a stop in the moment of the pause ends the run after it', async (t) => {
  const setUp = makeEngine(t)
  const { engine, plan } = setUp
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.say(...askFor('c1'))
  const hold = plan.hold('runs.commit')
  execution.finish()
  await hold.arrived
  const stopped = engine.stop(run)
  hold.release()
  await stopped
  t.equal(run.record.state, 'cancelled')
  t.same(kindsOf(run), ['started', 'call', 'asks', 'started', 'cancelled'])
})

t.test('a claim that fails, and a gate that does, leave the run waiting', async (t) => {
  for (const operation of ['runs.get', 'interrupts.list', 'leases.acquire', 'interrupts.claim', 'gates.enter'] as const) {
    const setUp = makeEngine(t)
    const { engine, plan } = setUp
    const agent = new ScriptedAgent()
    const run = await paused(setUp, agent)
    plan.failBefore(operation, { times: Infinity })
    await t.rejects(engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { code: 'AGT_ERR_STORE_UNAVAILABLE' }, operation)
    plan.heal()
    t.match(await engine.openInterrupts({}, 'ledger', 's1'), [{ state: 'open' }])
    t.equal((await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })).kind, 'resumed', operation)
    await engine.stop(run)
  }
})

t.test('a run resumes after a restart, on another node, from what is stored', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const first = makeEngine(t, { store, node: 'a' })
  const agent = new ScriptedAgent({ resume: true })
  const run = await paused(first, agent, { detail: { level: 'full' }, stored: { ask: 'x' } })
  const lines = linesOf(run)
  await first.engine.close()

  const { engine } = makeEngine(t, { store, node: 'b' })
  engine.register(ledger)
  const found = await engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.match(found.record, { state: 'waiting', detail: { level: 'full' }, input: { ask: 'x' } })
  t.same(linesOf(found), lines)
  t.equal(found.topic.epoch, run.topic.epoch)
  const reader = new Reader(found, ledgerView('status'), { after: '1' })
  t.same(await engine.resume(found, { ...specOf(agent), agent: undefined as never, decisions: [approve('c1')] }), { kind: 'no-agent' })
  const other = new ScriptedAgent()
  const resumed = runOf(await engine.resume(found, { ...specOf(other), decisions: [approve('c1')] }))
  t.equal(resumed.topic, found.topic)
  const execution = await other.called()
  await execution.say(...resultOf('c1'))
  execution.finish()
  t.match(await resumed.ended, { state: 'completed', node: 'b' })
  await reader.until(({ end }) => end === 'complete')
  t.same(kindsOf(resumed), ['started', 'call', 'asks', 'started', 'result', 'success'])
  t.same(linesOf(resumed).flatMap((line) => (line as { execution?: number }).execution ?? []), [0, 1])
})

t.test('an instance that can not be made again is kept over the pause and goes on, one that can is closed', async (t) => {
  for (const resume of [false, true]) {
    const setUp = makeEngine(t)
    const { engine } = setUp
    const made: ScriptedAgent[] = []
    const factory = () => {
      const agent = new ScriptedAgent({ resume })
      made.push(agent)
      coming.shift()?.(agent)
      return agent
    }
    const coming: ((agent: ScriptedAgent) => void)[] = []
    const first = new Promise<ScriptedAgent>((resolve) => { coming.push(resolve) })
    const run = runOf(await engine.start(specOf(factory)))
    const agent = await first
    await pause(agent, run)
    await turn()
    t.equal(agent.closed, resume ? 1 : 0)
    const { agent: _agent, ...rest } = specOf(factory)
    if (resume) {
      t.same(await engine.resume(run, { ...rest, decisions: [approve('c1')] }), { kind: 'no-agent' })
      await engine.stop(run)
    } else {
      t.equal((await engine.resume(run, { ...rest, decisions: [approve('c1')] })).kind, 'resumed')
      const second = await agent.called()
      second.finish()
      await run.ended
      await turn()
      t.equal(agent.closed, 1)
    }
    t.equal(made.length, 1)
  }
})

t.test('a shared instance needs no naming at the resume', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent)
  const { agent: _agent, ...rest } = specOf(agent)
  t.equal((await setUp.engine.resume(run, { ...rest, decisions: [approve('c1')] })).kind, 'resumed')
  await setUp.engine.stop(run)
})

t.test('a run without the session queues for it again when it resumes', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const run = await paused(setUp, agent, { holdGateWhileWaiting: false })
  const other = runOf(await engine.start(specOf(agent, { clientId: 'r2' })))
  const between = await agent.called()
  t.equal((await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })).kind, 'resumed')
  await turn()
  t.equal(agent.executions.length, 2)
  between.finish()
  await other.ended
  const second = await agent.called()
  t.equal(second.context.runId, 'r1')
  second.finish()
  t.equal((await run.ended).state, 'completed')
})
