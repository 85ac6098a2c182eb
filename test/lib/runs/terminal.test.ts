import { mock } from 'node:test'
import t from 'tap'
import { AgentError, type AgentEventInit, RunInterrupted } from '../../../lib/agent/index.ts'
import { type Run, type RunLogger } from '../../../lib/runs/index.ts'
import { agentOf, makeEngine, Reader, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, linesOf, specOf } from '../../helpers/run-specs.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const TEXT: AgentEventInit = { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'x' }
const terminals = new Set(['success', 'cancelled', 'error', 'asks'])

t.test('one terminal on every path, last, with blocks closed before it', async (t) => {
  const ring: { cause?: unknown } = new Error('secret ring')
  ring.cause = ring
  const failed = { kind: 'error', code: 'internal_error', message: 'The agent failed.' }
  const paths: Record<string, { readonly stream: () => AsyncGenerator<AgentEventInit>, readonly last: object, readonly state: string, readonly text: string[] }> = {
    returns: { stream: async function * () { yield TEXT }, last: { kind: 'success', reason: 'MODEL_STOP' }, state: 'completed', text: ['text', 'text-end'] },
    'returns at once': { stream: async function * () {}, last: { kind: 'success', reason: 'MODEL_STOP' }, state: 'completed', text: [] },
    'throws before anything': { stream: async function * () { throw new Error('secret') }, last: failed, state: 'failed', text: [] },
    'throws an error': { stream: async function * () { yield TEXT; throw new Error('secret') }, last: failed, state: 'failed', text: ['text', 'text-end'] },
    // eslint-disable-next-line no-throw-literal
    'throws undefined': { stream: async function * () { yield TEXT; throw undefined }, last: failed, state: 'failed', text: ['text', 'text-end'] },
    'throws a ring of causes': { stream: async function * () { yield TEXT; throw ring }, last: failed, state: 'failed', text: ['text', 'text-end'] },
    'throws in a finally': {
      // eslint-disable-next-line no-unsafe-finally
      stream: async function * () { try { yield TEXT } finally { throw new Error('secret') } }, last: failed, state: 'failed', text: ['text', 'text-end']
    },
    'throws after its own end': {
      stream: async function * () { yield TEXT; yield { type: 'AGENT_END' }; throw new Error('secret') }, last: failed, state: 'failed', text: ['text', 'text-end']
    },
    'goes on after its own end': {
      stream: async function * () { yield TEXT; yield { type: 'AGENT_END' }; yield { ...TEXT, delta: 'late' } },
      last: { kind: 'success', reason: 'MODEL_STOP' },
      state: 'completed',
      text: ['text', 'text-end']
    },
    'explains its failure': {
      stream: async function * () { throw new AgentError({ code: 'rate_limited', message: 'Try later.', expose: true }) },
      last: { kind: 'error', code: 'rate_limited', message: 'Try later.' },
      state: 'failed',
      text: []
    },
    'explains its failure to us alone': {
      stream: async function * () { throw new AgentError({ code: 'db_down', message: 'secret' }) },
      last: { kind: 'error', code: 'db_down', message: 'The agent failed.' },
      state: 'failed',
      text: []
    },
    'says that it was interrupted': {
      stream: async function * () { yield TEXT; yield { type: 'AGENT_END', reason: 'INTERRUPTED' } },
      last: { kind: 'error', code: 'agent' },
      state: 'cancelled',
      text: ['text', 'text-end']
    },
    'throws that it was interrupted': {
      stream: async function * () { yield TEXT; throw new RunInterrupted('tool') }, last: { kind: 'error', code: 'agent' }, state: 'cancelled', text: ['text', 'text-end']
    }
  }
  for (const [name, path] of Object.entries(paths)) {
    await t.test(name, async (t) => {
      const { engine, store } = makeEngine(t)
      const run = runOf(await engine.start(specOf(agentOf(path.stream))))
      const reader = new Reader(run, ledgerView('verbose'))
      const record = await run.ended
      await reader.until(({ end }) => end !== undefined)
      t.equal(record.state, path.state)
      t.same(kindsOf(run).slice(0, -1), ['started', ...path.text])
      t.same(linesOf(run).at(-1), path.last)
      t.equal(kindsOf(run).filter((kind) => terminals.has(kind)).length, 1)
      const stored = await store.log.read(record.key, 0, 100)
      t.same(stored?.events.map(({ data }) => JSON.parse(data) as unknown), linesOf(run), 'what was told is what was stored')
      t.same(stored?.events.map(({ seq }) => seq), run.topic.read(0).map((_, index) => index + 1), 'dense from 1')
      t.equal(reader.end, 'complete')
      t.notOk(reader.text.includes('secret'))
      t.notOk(JSON.stringify(record).includes('secret'))
    })
  }
})

t.test('the first end wins and later ones are dropped and logged', async (t) => {
  const dropped: unknown[] = []
  const logger: RunLogger = { debug: (fields) => { dropped.push(fields) }, info () {}, warn () {}, error () {}, child: () => logger }
  const { engine } = makeEngine(t, { logger })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('x')
  const first = engine.stop(run, { message: 'enough' })
  const second = engine.stop(run)
  await Promise.all([first, second])
  t.same(kindsOf(run), ['started', 'text', 'text-end', 'cancelled'])
  t.same(run.record.end, { kind: 'cancelled', message: 'enough' })
  t.same(dropped, [{ cause: 'cancelled', first: 'cancelled' }])
  await engine.stop(run)
  t.equal(run.record.state, 'cancelled', 'a run that has ended stays as it ended')
})

t.test('the agent learns why it was stopped, as an AbortError', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const { context, returned } = await agent.called()
  await engine.stop(run)
  await returned
  t.match(context.signal.reason, { name: 'AbortError', source: 'user' })
  t.ok(context.signal.reason instanceof RunInterrupted)
})

t.test('a run that takes too long is ended by its timeout', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { runTimeoutMs: 5_000 })))
  const execution = await agent.called()
  await execution.text('x')
  mock.timers.tick(5_000)
  const record = await run.ended
  t.same([record.state, record.end], ['failed', { kind: 'timeout' }])
  t.same(kindsOf(run), ['started', 'text', 'text-end', 'error'])
  t.equal(execution.context.signal.reason.source, 'system')
})

t.test('an agent that ignores its abort is left behind after the grace', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { cancelGraceMs: 300 })))
  const execution = await agent.called()
  execution.isDeaf = true
  const stopped = engine.stop(run)
  await turn()
  t.equal(run.record.state, 'running')
  mock.timers.tick(300)
  await stopped
  t.equal(run.record.state, 'cancelled')
  execution.fail(new Error('late'))
  await turn()
  t.same(kindsOf(run), ['started', 'cancelled'])
})

t.test('a factory that fails is the failure of its run', async (t) => {
  const { engine } = makeEngine(t)
  for (const [clientId, agent] of Object.entries({
    sync: () => { throw new Error('secret') },
    async: async () => { throw new AgentError({ code: 'agent_not_found', message: 'No such agent.', expose: true }) }
  })) {
    const run = runOf(await engine.start(specOf(agent, { clientId, session: clientId })))
    await run.ended
    t.same(kindsOf(run), ['started', 'error'])
  }
})

t.test('an instance of a factory is closed at the run\'s end, one passed in is not', async (t) => {
  const { engine } = makeEngine(t)
  const shared = new ScriptedAgent()
  const made = new ScriptedAgent()
  for (const [session, agent] of [['a', shared], ['b', () => made]] as const) {
    const run = runOf(await engine.start(specOf(agent, { session, clientId: session })))
    const execution = await (session === 'a' ? shared : made).called()
    execution.finish()
    await run.ended
  }
  t.same([shared.closed, made.closed], [0, 1])
})

t.test('an instance that comes after the abort is closed as well, and a close that fails is logged', async (t) => {
  const warnings: string[] = []
  const logger: RunLogger = { debug () {}, info () {}, warn: (_fields, sentence) => { warnings.push(sentence) }, error () {}, child: () => logger }
  const { engine } = makeEngine(t, { logger })
  let deliver: (agent: ScriptedAgent) => void = () => {}
  const run = runOf(await engine.start(specOf(() => new Promise<ScriptedAgent>((resolve) => { deliver = resolve }))))
  await turn()
  await engine.stop(run)
  t.same(kindsOf(run), ['started', 'cancelled'])
  const late = new ScriptedAgent()
  deliver(late)
  await turn()
  t.same([late.closed, late.executions.length], [1, 0])

  const failing = agentOf(async function * () {}, { close: () => { throw new Error('no') } })
  const other = runOf(await engine.start(specOf(() => failing, { clientId: 'r2' })))
  await other.ended
  await turn()
  t.same(warnings, ['closing an agent failed'])
})

t.test('a context that can not be prepared fails the run, and an abort does not wait for it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const failing = runOf(await engine.start(specOf(agent, { prepareContext: () => { throw new Error('no') } })))
  await failing.ended
  t.same(kindsOf(failing), ['started', 'error'])
  const hanging = runOf(await engine.start(specOf(agent, { clientId: 'r2', prepareContext: () => new Promise(() => {}) })))
  await turn()
  await engine.stop(hanging)
  t.same(kindsOf(hanging), ['started', 'cancelled'])
  t.equal(agent.executions.length, 0)
})

t.test('the context carries who, where and what was prepared', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent({ denyRules: true })
  const denyRules = [{ tool_name: 'rm', behavior: 'deny' as const }]
  const run = runOf(await engine.start(specOf(agent, { userId: 'u1', denyRules, prepareContext: ({ attributes }) => { attributes.set('tenant', 'blue') } })))
  const execution = await agent.called()
  const { sessionId, runId, userId, protocol, attributes } = execution.context
  t.same({ sessionId, runId, userId, protocol, attributes: [...attributes] }, { sessionId: 's1', runId: 'r1', userId: 'u1', protocol: 'ledger', attributes: [['tenant', 'blue']] })
  t.same(execution.context.permissions.check({ name: 'rm', input: {} }).behavior, 'deny')
  execution.finish()
  await run.ended
})

t.test('an agent that does not enforce deny rules is refused when there are any', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { denyRules: [{ tool_name: 'rm', behavior: 'deny' }] })))
  await run.ended
  t.match(linesOf(run).at(-1), { kind: 'error', code: 'deny_rules_unsupported' })
  t.equal(agent.executions.length, 0)
})

t.test('a projection that throws ends in the protocol\'s bare terminal, and the agent is stopped', async (t) => {
  const { engine } = makeEngine(t)
  for (const [where, at] of Object.entries({ open: 0, next: 1, close: 2 })) {
    const broken = {
      ...ledger,
      name: `broken ${where}`,
      project: (...args: Parameters<typeof ledger.project>) => {
        const projection = ledger.project(...args)
        const fail = (): never => { throw new Error('secret') }
        return {
          open: at === 0 ? fail : projection.open.bind(projection),
          next: at === 1 ? fail : projection.next.bind(projection),
          close: at === 2 ? fail : projection.close.bind(projection)
        }
      }
    }
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent, { protocol: broken, session: where, clientId: where })))
    if (at > 0) {
      const execution = await agent.called()
      execution.text('x').catch(() => {})
      if (at === 2) execution.finish()
      else await execution.returned
    }
    const record = await run.ended
    t.equal(record.state, 'failed')
    t.match(linesOf(run).at(-1), { kind: 'error', code: 'internal_error' })
    t.equal(kindsOf(run).filter((kind) => terminals.has(kind)).length, 1)
  }
})

t.test('a run that has ended is at hand, and nothing that only its execution needed', async (t) => {
  const { engine } = makeEngine(t)
  const kept: WeakRef<object>[] = []
  const start = async (): Promise<Run> => {
    const spec = specOf(agentOf(async function * (input) {
      kept.push(new WeakRef(input))
      yield TEXT
    }), { input: { messages: [], history: 'append' } })
    kept.push(new WeakRef(spec))
    return runOf(await engine.start(spec))
  }
  const run = await start()
  await run.ended
  await turn()
  const { gc } = globalThis
  if (gc === undefined) return t.fail('run with --expose-gc')
  gc()
  t.same(kept.map((ref) => ref.deref()), [undefined, undefined])
  t.equal(await engine.find({}, 'ledger', 'r1'), run)
})
