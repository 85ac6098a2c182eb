import t from 'tap'
import { AgentError } from '../../../lib/agent/index.ts'
import { type RunLogger, type RunProtocol } from '../../../lib/runs/index.ts'
import { failureOf } from '../../../lib/runs/errors.ts'
import { memoryStore, type OperationName, type Store, wrapStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { agentOf, approve, askFor, makeEngine, makePair, pause, Reader, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

/** A logger that keeps its sentences. */
function listen (): { readonly logger: RunLogger, readonly said: string[] } {
  const said: string[] = []
  const say = (_fields: object, sentence: string): void => { said.push(sentence) }
  const logger: RunLogger = { debug: say, info: say, warn: say, error: say, child: () => logger }
  return { logger, said }
}

/** A store whose next answers to an operation are the test's. */
function answering (store: Store, operation: OperationName, answers: (() => unknown)[]): Store {
  return wrapStore(store, (name, call) => {
    const answer = name === operation ? answers.shift() : undefined
    return answer === undefined ? call() : Promise.resolve(answer() as never)
  })
}

t.test('a run whose store dies before its end is stored promises nothing', async (t) => {
  const { engine, plan } = makeEngine(t, { storeTimeoutMs: 20 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await turn()
  plan.failBefore('log.append', { times: Infinity })
  await execution.text('x')
  execution.finish()
  t.match(await run.ended, { state: 'failed', end: { code: 'STORE_UNAVAILABLE' } })
})

t.test('a backend that has lost what it acknowledged gets it again before the end is stored', async (t) => {
  const base = memoryStore()
  t.teardown(() => base.close())
  const record = { kind: 'misplaced', last: 1, record: undefined }
  const { engine } = makeEngine(t, { store: answering(base, 'runs.commit', [() => record]) })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('x')
  execution.finish()
  t.equal((await run.ended).state, 'completed')
  t.same((await base.log.read(run.record.key, 0, 100))?.events.map(({ data }) => JSON.parse(data) as unknown), linesOf(run))
})

t.test('a backend that has lost more than memory holds can be promised nothing', async (t) => {
  const base = memoryStore()
  t.teardown(() => base.close())
  const record = { kind: 'misplaced', last: 1, record: undefined }
  const { engine } = makeEngine(t, { store: answering(base, 'runs.commit', [() => record]) })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 2, maxBytes: 10_000, ttlMs: 1_000 } })))
  const execution = await agent.called()
  await execution.text('a', 'b', 'c')
  await turn()
  execution.finish()
  t.match(await run.ended, { end: { code: 'STORE_UNAVAILABLE' } })
})

t.test('a pause that can not be tied to its node is tried again, and is none when that fails', async (t) => {
  for (const times of [2, Infinity]) {
    const { logger, said } = listen()
    const { engine, plan, store } = makeEngine(t, { logger, storeTimeoutMs: 20 })
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent)))
    const execution = await agent.called()
    await execution.say(...askFor('c1'))
    plan.failBefore('nodes.bind', { times })
    execution.finish()
    const record = await run.settled()
    if (times === 2) t.equal(record.state, 'waiting')
    else {
      t.match(record, { state: 'failed', end: { code: 'STORE_UNAVAILABLE' } })
      t.ok(said.includes('what belongs to the end of the run could not be stored'))
      t.same(await store.interrupts.list(record.key), [])
    }
  }
})

t.test('closing does not wait for what can not be stored', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last' })
  const execution = await agent.called()
  await execution.say(...askFor('c1'))
  plan.failBefore('nodes.bind', { times: Infinity })
  execution.finish()
  await turn()
  await engine.close({ timeoutMs: 20 })
  t.equal((await run.ended).state, 'lost')
  t.notOk(own.text.includes('asks'))
  t.notOk(own.text.includes('error'))
})

t.test('a session that can not be freed does not hold the end back', async (t) => {
  const { logger, said } = listen()
  const { engine, plan } = makeEngine(t, { logger })
  plan.failBefore('gates.leave', { times: Infinity })
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  t.equal((await run.ended).state, 'completed')
  t.same(kindsOf(run), ['started', 'success'])
  t.ok(said.includes('a session could not be freed; its ticket runs out by itself'))
})

t.test('a protocol that fails even in its bare terminal fails alone', async (t) => {
  const { logger, said } = listen()
  const { engine } = makeEngine(t, { logger })
  const fail = (): never => { throw new Error('broken') }
  const broken: RunProtocol = { name: 'broken', project: fail, interruptId: fail, lost: fail }
  const run = runOf(await engine.start(specOf(new ScriptedAgent(), { protocol: broken })))
  const reader = new Reader(run, ledgerView('verbose'))
  t.equal((await run.ended).state, 'lost')
  await reader.until(({ end }) => end !== undefined)
  t.ok(said.includes('a run failed in a way that nothing can be told of'))
})

t.test('a superseding run waits when the one before it can not be found', async (t) => {
  const { logger, said } = listen()
  const { engine, plan } = makeEngine(t, { logger })
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  await agent.called()
  plan.failBefore('gates.holder')
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'supersede' })))
  t.match(await first.ended, { end: { code: 'superseded' } })
  const execution = await agent.called()
  execution.finish()
  await second.ended
  t.ok(said.includes('another run could not be superseded; the new one waits for it'))
})

t.test('a parked ticket of something unknown is left alone', async (t) => {
  const { engine, store } = makeEngine(t)
  for (const data of [undefined, 'text', { protocol: 7 }, { protocol: 'ledger', clientId: 'other' }]) {
    await store.gates.enter({}, 's1', { id: 'strange', ms: undefined, ...data !== undefined && { data } })
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent, { onBusySession: 'supersede', clientId: String(data) })))
    await turn()
    t.equal(run.record.state, 'pending')
    t.match(await engine.start(specOf(agent, { clientId: 'r2' })), { kind: 'busy', runningId: typeof data === 'object' && 'clientId' in data ? 'other' : '' })
    await store.gates.leave({}, 's1', 'strange')
    await engine.stop(run)
  }
})

t.test('a claim that somebody else was faster with, after the lease was taken, gives the lease back', async (t) => {
  const { logger, said } = listen()
  const base = memoryStore()
  t.teardown(() => base.close())
  const taken = { kind: 'taken', records: [] }
  const { engine, plan } = makeEngine(t, { logger, store: answering(base, 'interrupts.claim', [() => taken, () => taken]) })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  const resume = () => engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })
  t.match(await resume(), { kind: 'interrupts', problem: { kind: 'taken' } })
  plan.failBefore('leases.release')
  t.match(await resume(), { kind: 'interrupts', problem: { kind: 'taken' } })
  t.ok(said.includes('a lease could not be given back; it runs out by itself'))
  t.match(await resume(), { kind: 'not-waiting' }, 'until it has run out')
  await base.leases.release(run.record.key, 3)
  t.equal((await resume()).kind, 'resumed')
  await engine.stop(run)
})

t.test('a waiting run of a protocol that is not served here can not be taken up', async (t) => {
  const { store, a, b } = makePair(t)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  t.match(await b.engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'not-waiting' })
  await b.engine.stop(run)
  t.equal((await store.runs.get(run.record.key))?.state, 'waiting')
  t.equal((await a.engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] })).kind, 'resumed', 'its lease was given back')
  await a.engine.stop(run)
})

t.test('a stop that comes too late for a waiting run changes nothing', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  await store.leases.acquire(run.record.key, { node: 'other', op: 'x', ms: 60_000 })
  await engine.stop(run)
  t.equal((await store.runs.get(run.record.key))?.state, 'waiting')
})

t.test('an answered pause is over in its record wherever it is looked up', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent, { protocol: envelope, holdGateWhileWaiting: false })))
  await pause(agent, first)
  const second = runOf(await engine.start(specOf(agent, { protocol: envelope, clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
  const answering = await agent.called()
  answering.finish()
  await second.ended
  const found = await engine.findByEpoch({}, 'envelope', 's1', first.topic.epoch)
  t.equal(found, first)
  t.match(found?.record, { state: 'completed', end: { kind: 'resumed' }, links: { resumedBy: second.record.key.id } })
})

t.test('a pause for a question alone, and its usage', async (t) => {
  const { engine } = makeEngine(t)
  const ends: unknown[] = []
  const watching: RunProtocol = {
    ...ledger,
    name: 'watching',
    project: (...args) => {
      const projection = ledger.project(...args)
      return {
        open: (emit) => { projection.open(emit) },
        next: (event, emit) => { projection.next(event, emit) },
        close: (end, emit) => { ends.push(end); projection.close(end, emit) }
      }
    }
  }
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { protocol: watching })))
  const execution = await agent.called()
  await execution.say({ type: 'MODEL_CALL_START' }, { type: 'MODEL_CALL_END', usage: { inputTokens: 3, outputTokens: 4 } })
  await execution.say({ type: 'REQUIRE_INPUT', requests: [{ id: 'q1', reason: 'input_required' }] })
  execution.finish()
  await run.settled()
  t.match(ends, [{ kind: 'paused', usage: { inputTokens: 3, outputTokens: 4 }, interrupts: [{ id: 'ask-q1', state: 'open', session: 's1' }] }])
  t.notOk('openCalls' in ((await engine.openInterrupts({}, 'watching', 's1'))[0]?.pending ?? {}))
  const decisions = [{ kind: 'input' as const, requestId: 'q1', status: 'cancelled' as const }]
  t.equal((await engine.resume(run, { ...specOf(agent), decisions })).kind, 'resumed')
  await engine.stop(run)
})

t.test('a run whose questions are being answered already can not be resumed', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  await pause(agent, run)
  await store.interrupts.claim(run.record.key, { run: run.record.key.id, fence: 1 }, [{ id: 'ask-c1', decision: {} }])
  t.match(await engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }), { kind: 'interrupts', problem: { kind: 'taken' } })
})

t.test('what a client may know of a failure', async (t) => {
  const cause = new AgentError({ code: 'busy', message: 'secret', retryable: true })
  t.same(failureOf(cause), { code: 'busy', message: 'The agent failed.', cause, retryable: true })
  t.same(failureOf('secret'), { code: 'internal_error', message: 'The agent failed.', cause: 'secret' })
})

t.test('an instance that comes too late and can not be closed is logged', async (t) => {
  const { logger, said } = listen()
  const { engine } = makeEngine(t, { logger })
  let deliver: (agent: ReturnType<typeof agentOf>) => void = () => {}
  const run = runOf(await engine.start(specOf(() => new Promise((resolve) => { deliver = resolve }))))
  await turn()
  await engine.stop(run)
  deliver(agentOf(async function * () {}, { close: () => { throw new Error('no') } }))
  await turn()
  t.ok(said.includes('closing an agent failed'))
})
