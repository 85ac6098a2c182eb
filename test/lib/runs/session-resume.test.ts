import t from 'tap'
import { type AgentEventInit } from '../../../lib/agent/index.ts'
import { OUTCOME_UNKNOWN, type Run, type RunSpec } from '../../../lib/runs/index.ts'
import { wrapStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { approve, askFor, call, deny, makeEngine, pause, resultOf, runOf, type TestEngine, turn } from '../../helpers/run-engine.ts'
import { linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

function spec (agent: ScriptedAgent, overrides: Partial<RunSpec> = {}): RunSpec {
  return specOf(agent, { protocol: envelope, holdGateWhileWaiting: false, ...overrides })
}

async function paused ({ engine }: TestEngine, agent: ScriptedAgent, overrides: Partial<RunSpec> = {}, events: readonly AgentEventInit[] = askFor('c1')): Promise<Run> {
  const run = runOf(await engine.start(spec(agent, overrides)))
  const execution = await agent.called()
  await execution.say(...events)
  execution.finish()
  await run.ended
  return run
}

t.test('a pause closes the log, and a new run answers it', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const first = await paused(setUp, agent)
  t.equal(first.record.state, 'waiting')
  t.equal(first.topic.isEnded, true)
  t.same(linesOf(first), [{ begin: 'r1' }, { call: 'c1' }, { end: 'paused', interrupts: ['int:c1'], calls: ['c1'] }])
  const second = runOf(await engine.start(spec(agent, { clientId: 'r1', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
  const execution = await agent.called()
  await execution.say(...resultOf('c1'))
  execution.finish()
  await second.ended
  t.same(linesOf(second), [{ begin: 'r1', resumed: ['c1'] }, { result: 'c1', state: 'success' }, { end: 'success' }])
  t.equal(second.record.links?.resumes, first.record.key.id)
  t.match(await store.runs.get(first.record.key), { state: 'completed', end: { kind: 'resumed' }, links: { resumedBy: second.record.key.id } })
  t.match(await store.interrupts.list(first.record.key), [{ state: 'done', outcome: { state: 'success' }, decision: approve('c1') }])
  t.equal(await engine.lastOf({}, 'envelope', 's1'), second)
})

t.test('what does not answer exactly the open interrupts is refused, and they stay', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const answer = (interrupts: string[], ...decisions: ReturnType<typeof approve>[]) => engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts, decisions } }))
  t.match(await answer(['int:c1'], approve('c1')), { kind: 'interrupts', problem: { kind: 'none-open', ids: ['int:c1'] } })
  await paused(setUp, agent, {}, askFor('c1', 'c2'))
  t.match(await engine.start(spec(agent, { clientId: 'r2' })), { kind: 'interrupts', problem: { kind: 'unanswered', missing: ['int:c1', 'int:c2'] } })
  t.match(await answer([]), { kind: 'interrupts', problem: { kind: 'unanswered' } })
  t.match(await answer(['int:c1'], approve('c1')), { kind: 'interrupts', problem: { kind: 'mismatch', missing: ['int:c2'], ids: [] } })
  t.match(await answer(['int:c1', 'int:c2', 'int:c3'], approve('c1')), { kind: 'interrupts', problem: { kind: 'mismatch', missing: [], ids: ['int:c3'] } })
  t.match(await answer(['int:c1', 'int:c2', 'int:c1'], approve('c1')), { kind: 'interrupts', problem: { kind: 'duplicate', ids: ['int:c1'] } })
  t.match(await answer(['int:c1', 'int:c2'], approve('c1')), { kind: 'interrupts', problem: { kind: 'mismatch', missing: ['int:c2'] } }, 'named, and without a decision')
  t.equal(agent.executions.length, 1)
  t.same((await engine.openInterrupts({}, 'envelope', 's1')).map(({ state }) => state), ['open', 'open'])
  t.equal((await answer(['int:c2', 'int:c1'], approve('c1'), deny('c2'))).kind, 'started')
  await engine.stopSession({}, 'envelope', 's1')
})

t.test('a run may be allowed beside open interrupts', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  await paused(setUp, agent)
  t.equal((await setUp.engine.start(spec(agent, { clientId: 'r2', requireResume: false }))).kind, 'started')
})

t.test('the open interrupts of two runs can not be answered at once', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  await paused(setUp, agent)
  await paused(setUp, agent, { clientId: 'r2', requireResume: false }, askFor('c2'))
  const result = await setUp.engine.start(spec(agent, { clientId: 'r3', resumes: { interrupts: ['int:c1', 'int:c2'], decisions: [approve('c1'), approve('c2')] } }))
  t.match(result, { kind: 'interrupts', problem: { kind: 'mismatch', missing: ['int:c2'] } })
})

t.test('two answers at the same moment: one runs, the other is told', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  await paused(setUp, agent)
  const answers = [approve('c1'), deny('c1'), approve('c1')]
  const results = await Promise.all(answers.map((decision, index) => engine.start(spec(agent, { clientId: `r${index}`, onBusySession: 'queue', resumes: { interrupts: ['int:c1'], decisions: [decision] } }))))
  t.same(results.map(({ kind }) => kind).sort(), ['interrupts', 'interrupts', 'started'])
  t.match(results.filter(({ kind }) => kind === 'interrupts'), [{ problem: { kind: 'taken', ids: ['int:c1'] } }, { problem: { kind: 'taken' } }])
  const run = runOf(results.find(({ kind }) => kind === 'started') as typeof results[number])
  const execution = await agent.called()
  execution.finish()
  await run.ended
  t.equal(agent.executions.length, 2)
})

t.test('an expired one is refused unless it is given up', async (t) => {
  let now = Date.now()
  const setUp = makeEngine(t, { memory: { now: () => now } })
  const { engine } = setUp
  const agent = new ScriptedAgent()
  await paused(setUp, agent, { interruptTtlMs: 1_000 })
  now += 2_000
  const answer = (decision: ReturnType<typeof approve>) => engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [decision] } }))
  t.match(await answer(approve('c1')), { kind: 'interrupts', problem: { kind: 'expired', ids: ['int:c1'] } })
  t.match(await engine.start(spec(agent, { clientId: 'r2' })), { kind: 'interrupts' }, 'it stays until it is given up')
  t.equal((await answer(deny('c1'))).kind, 'started')
  await engine.stopSession({}, 'envelope', 's1')
})

t.test('interrupts that are gone or fenced count as taken', async (t) => {
  for (const result of [{ kind: 'missing', ids: ['int:c1'] }, { kind: 'fenced', fence: 9 }] as const) {
    const base = makeEngine(t)
    const agent = new ScriptedAgent()
    const store = wrapStore(base.store, (operation, run) => operation === 'interrupts.claim' ? Promise.resolve(result as never) : run())
    const setUp = makeEngine(t, { store })
    await paused(setUp, agent)
    t.match(await setUp.engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })), { kind: 'interrupts', problem: { kind: 'taken', ids: ['int:c1'] } })
  }
})

t.test('a run that answered and failed has answered: the session is free, the call is not run again', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const first = await paused(setUp, agent)
  const second = runOf(await engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
  const execution = await agent.called()
  execution.fail(new Error('no'))
  await second.ended
  t.match(await store.interrupts.list(first.record.key), [{ state: 'done', outcome: { state: OUTCOME_UNKNOWN } }])
  t.equal((await engine.start(spec(agent, { clientId: 'r3' }))).kind, 'started')
})

t.test('a call that the client answers with its next request is nothing to wait for', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const external: AgentEventInit = { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [call('x1')] }
  const first = await paused(setUp, agent, {}, [external])
  t.match(first.record, { state: 'completed', end: { kind: 'paused' } })
  t.same(linesOf(first), [{ begin: 'r1' }, { call: 'x1' }, { end: 'paused', interrupts: [], calls: ['x1'] }])
  t.same(await engine.openInterrupts({}, 'envelope', 's1'), [])
  const mixed = await paused(setUp, agent, { clientId: 'r2' }, [external, ...askFor('c1')])
  t.same(linesOf(mixed).at(-1), { end: 'paused', interrupts: ['int:c1'], calls: ['x1', 'c1'] })
  t.equal(mixed.record.state, 'waiting')
})

t.test('stopping a session whose run waits changes nothing', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const first = await paused(setUp, agent)
  t.equal(await engine.stopSession({}, 'envelope', 's1'), 'unknown')
  await engine.stop(first)
  t.match(await engine.openInterrupts({}, 'envelope', 's1'), [{ state: 'open' }])
})

t.test('a made instance is closed with the log', async (t) => {
  const setUp = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await setUp.engine.start(spec(agent, { agent: () => agent })))
  await pause(agent, run)
  await turn()
  t.equal(agent.closed, 1)
})

t.test('a link that can not be written is logged, and the run goes on', async (t) => {
  const warnings: string[] = []
  const logger = { debug () {}, info () {}, warn: (_fields: object, sentence: string) => { warnings.push(sentence) }, error () {}, child: () => logger }
  for (const how of ['failing', 'gone'] as const) {
    const setUp = makeEngine(t, { logger })
    const { engine, store, plan } = setUp
    const agent = new ScriptedAgent()
    const first = await paused(setUp, agent)
    if (how === 'failing') plan.failBefore('runs.get')
    const hold = how === 'gone' ? plan.hold('runs.get') : undefined
    const second = runOf(await engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
    if (hold !== undefined) {
      await hold.arrived
      await store.runs.delete(first.record.key)
      hold.release()
    }
    const execution = await agent.called()
    execution.finish()
    t.match(await second.ended, { state: 'completed' })
  }
  t.ok(warnings.includes('a resumed run could not be linked'))
})

t.test('an answer that no agent was given opens the question again', async (t) => {
  const setUp = makeEngine(t)
  const { engine, store } = setUp
  const agent = new ScriptedAgent()
  const first = await paused(setUp, agent)
  const answer = (overrides: Partial<RunSpec>) => engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] }, ...overrides }))
  const failing: Partial<RunSpec>[] = [
    { agent: () => { throw new Error('no agent') } },
    { prepareContext: () => { throw new Error('no context') } },
    { denyRules: [{ toolName: 'x', behavior: 'deny' } as never] }
  ]
  for (const overrides of failing) {
    const run = runOf(await answer(overrides))
    t.match(await run.ended, { state: 'failed' })
    t.match(await store.interrupts.list(first.record.key), [{ state: 'open' }])
    t.strictSame((await store.interrupts.list(first.record.key)).map(({ decision, claim }) => [decision, claim]), [[undefined, undefined]])
  }
  t.equal(agent.executions.length, 1)
  const run = runOf(await answer({}))
  const execution = await agent.called()
  await execution.say(...resultOf('c1'))
  execution.finish()
  await run.ended
  t.match(await store.interrupts.list(first.record.key), [{ state: 'done', outcome: { state: 'success' } }])
})

t.test('answers are taken by the pause that they were meant for, and by no later one', async (t) => {
  const setUp = makeEngine(t)
  const { engine } = setUp
  const agent = new ScriptedAgent()
  const first = await paused(setUp, agent)
  const answer = (run: string) => engine.start(spec(agent, { clientId: 'r2', resumes: { run, interrupts: ['int:c1'], decisions: [approve('c1')] } }))
  t.match(await answer('another'), { kind: 'interrupts', problem: { kind: 'taken', ids: ['int:c1'] } })
  t.equal((await answer(first.record.key.id)).kind, 'started')
  await engine.stopSession({}, 'envelope', 's1')
})

t.test('who looks a run up while it starts gets the run itself, and nothing of it twice', async (t) => {
  const setUp = makeEngine(t)
  const { engine, plan } = setUp
  const agent = new ScriptedAgent()
  await paused(setUp, agent)
  const hold = plan.hold('interrupts.claim')
  const starting = engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } }))
  await hold.arrived
  const looked = [engine.lastOf({}, 'envelope', 's1'), engine.find({}, 'envelope', 'r2')]
  hold.release()
  const second = runOf(await starting)
  t.same(await Promise.all(looked), [second, second])
  const execution = await agent.called()
  await execution.say(...resultOf('c1'))
  execution.finish()
  await second.ended
  t.same(linesOf(second), [{ begin: 'r2', resumed: ['c1'] }, { result: 'c1', state: 'success' }, { end: 'success' }])
})

t.test('who looks for a session\'s last run while a start is being refused gets the one before it', async (t) => {
  const base = makeEngine(t)
  const agent = new ScriptedAgent()
  let arrive = (): void => {}
  let release = (): void => {}
  const arrived = new Promise<void>((resolve) => { arrive = resolve })
  const released = new Promise<void>((resolve) => { release = resolve })
  const store = wrapStore(base.store, async (operation, run) => {
    if (operation !== 'interrupts.claim') return await run()
    arrive()
    await released
    return { kind: 'missing', ids: ['int:c1'] } as never
  })
  const setUp = makeEngine(t, { store })
  const { engine } = setUp
  const first = await paused(setUp, agent)
  const starting = engine.start(spec(agent, { clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } }))
  await arrived
  const looked = engine.lastOf({}, 'envelope', 's1')
  release()
  t.match(await starting, { kind: 'interrupts' })
  t.equal(await looked, first)
})

t.test('a last run whose log is gone is none', async (t) => {
  const setUp = makeEngine(t)
  await paused(setUp, new ScriptedAgent())
  const { engine } = makeEngine(t, { store: wrapStore(setUp.store, (operation, run) => operation === 'log.read' ? Promise.resolve(undefined as never) : run()) })
  engine.register(envelope)
  t.equal(await engine.lastOf({}, 'envelope', 's1'), undefined)
})
