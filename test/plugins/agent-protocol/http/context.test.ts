import t from 'tap'
import { type Agent, contextKey, type RuntimeContext } from '../../../../lib/agent/index.ts'
import {
  type AgentRequest, agentRequestKey, byId, fixed, flatten, of, RUNTIME_CONTEXT_ATTRIBUTES_KEY, type RuntimeContextCustomizer
} from '../../../../plugins/agent-protocol/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { agentOf, askFor } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp } from '../../../helpers/task-app.ts'

const CONTEXT = { user_id: 'u9', parent_session_id: 's-4', detail: 'full', tenant: 'blue', nothing: null, attributes: { region: 'cn', gone: null } }

t.test('a factory is told the whole submission, on submit and on each resume alike (D12)', async (t) => {
  const agent = new ScriptedAgent({ resume: true })
  const requests: AgentRequest[] = []
  const outcomes: string[] = []
  const app = await buildTaskApp(t, {
    agentFactory: (request) => {
      requests.push(request)
      return { agent, release: ({ status }) => { outcomes.push(status) } }
    }
  })
  await app.submit('t1', { agent_id: 'researcher', input: 'compare', context: CONTEXT })
  const execution = await agent.called()
  t.equal(outcomes.length, 0, 'nothing is given back before the execution has ended')
  await execution.say(...askFor('c1'))
  execution.finish()
  await app.settled('t1')
  t.strictSame(outcomes, ['awaiting_confirm'])
  await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] })
  ;(await agent.called()).finish()
  await app.settled('t1')
  t.strictSame(outcomes, ['awaiting_confirm', 'success'])
  t.equal(agent.closed, 0, 'the application\'s agent is never closed')
  const same = { taskId: 't1', agentId: 'researcher', userId: 'u9', parentSessionId: 's-4', sessionId: 't1', context: CONTEXT, attributes: { region: 'cn' }, denyRules: [], principal: undefined }
  const seen = requests.map(({ taskId, agentId, userId, parentSessionId, sessionId, context, attributes, denyRules, principal }) =>
    ({ taskId, agentId, userId, parentSessionId, sessionId, context, attributes, denyRules, principal }))
  t.strictSame(seen, [same, same])
  t.strictSame(requests.map(({ resume, input, decisions }) => [resume, input, decisions.length]), [[false, 'compare', 0], [true, '', 1]])
  const [request] = requests
  t.equal(request?.contextString('tenant'), 'blue')
  t.equal(request?.contextString('nothing'), undefined)
  t.equal(request?.contextValue('nothing'), null)
  t.equal(request?.contextString('toString'), undefined)
  t.equal(request?.attributeString('region'), 'cn')
  t.equal(request?.attributeString('gone'), undefined)
  t.throws(() => { (request?.context as { tenant: string }).tenant = 'red' }, TypeError)
})

t.test('a submission without agent_id asks for "default", then and ever after (D14)', async (t) => {
  const agent = new ScriptedAgent({ resume: true })
  const ids: string[] = []
  const app = await buildTaskApp(t, {
    agentFactory: ({ agentId }) => {
      ids.push(agentId)
      return agent
    }
  })
  await app.submit('t1')
  const execution = await agent.called()
  await execution.say(...askFor('c1'))
  execution.finish()
  await app.settled('t1')
  await app.ask('POST', '/tasks/t1/resume', { decisions: [] })
  await agent.called()
  t.strictSame(ids, ['default', 'default'])
})

t.test('a factory that gives nothing, or throws, fails the task', async (t) => {
  const app = await buildTaskApp(t, { agentFactory: ({ agentId }) => { if (agentId === 'broken') throw new Error('secret'); return null } })
  await app.submit('t1', { agent_id: 'nobody' })
  t.match((await app.settled('t1')).body, { status: 'error', code: 'agent_not_found', error: 'AgentFactory returned no agent for agent_id=nobody' })
  await app.submit('t2', { agent_id: 'broken' })
  t.match((await app.settled('t2')).body, { status: 'error', code: 'internal_error' })
})

t.test('what a factory gives too late is given back', async (t) => {
  let give = (): void => {}
  const asked = new Promise<void>((resolve) => { give = resolve })
  let made = (): void => {}
  const coming = new Promise<void>((resolve) => { made = resolve })
  const released = new Promise<string>((resolve) => {
    buildTaskApp(t, {
      agentFactory: async () => {
        made()
        await asked
        return { agent: new ScriptedAgent(), release: ({ status }) => { resolve(status) } }
      }
    }).then(async (app) => {
      await app.submit('t1')
      await coming
      await app.ask('POST', '/tasks/t1/cancel')
      give()
    })
  })
  t.equal(await released, 'cancelled')
})

t.test('agents can be chosen by name, made on demand, or fixed', async (t) => {
  const a = new ScriptedAgent()
  const b = new ScriptedAgent()
  const request = (agentId: string): AgentRequest => ({ agentId }) as AgentRequest
  t.equal(byId({ a }, b)(request('a')), a)
  t.equal(byId({ a }, b)(request('toString')), b)
  t.equal(byId({ a })(request('x')), undefined)
  t.equal(fixed(a)(request('x')), a)
  t.equal(of(() => b)(request('x')), b)
})

t.test('without agents and without a factory the plugin does not start', async (t) => {
  await t.rejects(buildTaskApp(t, {}), { code: 'AGT_ERR_OPTION_INVALID', message: /agentFactory/ })
})

t.test('attributes stand whole under one key, never flattened, and customizers come after them in order', async (t) => {
  const seen: [string, unknown][] = []
  const tenant = contextKey<string>('tenant')
  const note = (name: string): RuntimeContextCustomizer => (_, context) => { seen.push([name, context.attributes.get('region') ?? context.get(tenant)]) }
  const agent = new ScriptedAgent({ resume: true })
  const app = await buildTaskApp(t, {
    agent,
    customizers: [
      { order: 5, customize: note('last') },
      flatten('region', 'missing'),
      async ({ attributeString }, context) => {
        await Promise.resolve()
        context.attributes.set('region', `${attributeString('region') ?? ''}!`)
        context.set(tenant, 'blue')
      },
      { order: -1, customize: note('first') }
    ]
  })
  await app.submit('t1', { context: { attributes: { region: 'cn', 'agui.threadId': 'forged' } } })
  const execution = await agent.called()
  t.strictSame(seen, [['first', undefined], ['last', 'cn!']])
  t.strictSame(execution.context.attributes.get(RUNTIME_CONTEXT_ATTRIBUTES_KEY), { region: 'cn', 'agui.threadId': 'forged' })
  t.equal(execution.context.attributes.get('agui.threadId'), undefined)
  t.equal(execution.context.get(tenant), 'blue')
  t.equal(execution.context.get(agentRequestKey)?.taskId, 't1')
  await execution.say(...askFor('c1'))
  execution.finish()
  await app.settled('t1')
  await app.ask('POST', '/tasks/t1/resume', { decisions: [] })
  const again = await agent.called()
  t.equal(again.context.attributes.get('region'), 'cn!', 'on every execution')
})

t.test('without attributes the key is not there, and what is no object counts as none', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  for (const [index, attributes] of [undefined, null, [], 'x', {}, { a: null }].entries()) {
    await app.submit(`t${index}`, { context: { attributes } })
    t.equal((await agent.called()).context.attributes.has(RUNTIME_CONTEXT_ATTRIBUTES_KEY), false, String(index))
  }
})

t.test('reserved keys are not flattened, and said so', async (t) => {
  const warned = new Promise<Error>((resolve) => { process.once('warning', resolve) })
  const customize = flatten('agentId', 'outboundAddress', ' ', 'agentscope.x', 'agui.x', 'io.agentscope.x', 'agentprotocol.x', '__proto__', 'constructor', 'prototype', 'fastify-agents.x', 'fine')
  t.match(await warned, { code: 'AGT_WARN_RESERVED_KEY', message: /agentId.*outboundAddress.*prototype/ })
  const attributes = new Map<string, unknown>()
  await customize({ attributes: Object.freeze({ agentId: 'x', fine: 1, 'agui.x': 2 }) } as unknown as AgentRequest, { attributes } as unknown as RuntimeContext)
  t.strictSame([...attributes], [['fine', 1]])
})

t.test('a customizer that throws fails the task', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), customizers: [() => { throw new Error('secret') }] })
  await app.submit('t1')
  t.match((await app.settled('t1')).body, { status: 'error', code: 'internal_error' })
})

t.test('a denied tool is never run, on submit and after a resume with other arguments (D2)', async (t) => {
  const denied = noted('shell', { needsApproval: false })
  const asked = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([denied, asked]) })
  const context = { deny_rules: [{ tool_name: 'shell', behavior: 'DENY', source: 'parent' }, { tool_name: 'delete', rule_content: '/etc*', behavior: 'deny' }] }
  await app.submit('t1', { input: 'shell {"cmd":"ls"}\ndelete {"path":"/tmp/a"}', context })
  const { body } = await app.settled('t1')
  t.match(body, { status: 'awaiting_confirm', pending_confirms: [{ toolName: 'delete' }] })
  const [{ toolCallId }] = body.pending_confirms as [{ toolCallId: string }]
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId, approved: true, editedArgs: { path: '/etc/passwd' } }] }), {
    status: 200, body: { approved: [], denied: [toolCallId] }
  })
  t.match((await app.settled('t1')).body, { status: 'success' })
  t.strictSame([denied.ran, asked.ran], [[], []])
})

t.test('an agent that does not enforce deny rules is not run with them', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1', { context: { deny_rules: [{ tool_name: 'shell', behavior: 'DENY' }] } })
  t.match((await app.settled('t1')).body, { status: 'error', code: 'deny_rules_unsupported' })
  t.equal(agent.executions.length, 0)
})

t.test('tasks of one session run one after the other, those of two users apart (D15)', async (t) => {
  const agent = new ScriptedAgent({ resume: true })
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1', { context: { session_id: 's', user_id: 'u1' } })
  const first = await agent.called()
  t.equal(first.context.sessionId, 's')
  await app.submit('t2', { context: { session_id: 's', user_id: 'u1' } })
  t.match((await app.ask('GET', '/tasks/t2')).body, { status: 'pending', session_id: 's' })
  await app.submit('t3', { context: { session_id: 's', user_id: 'u2' } })
  const third = await agent.called()
  t.equal(third.context.userId, 'u2')
  first.finish()
  t.equal((await agent.called()).context.runId, 't2')
})

t.test('a paused task keeps its session: a new one is refused, or waits', async (t) => {
  const pausing = (agent: ScriptedAgent) => async (): Promise<void> => {
    const execution = await agent.called()
    await execution.say(...askFor('c1'))
    execution.finish()
  }
  const agent = new ScriptedAgent({ resume: true })
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1', { context: { session_id: 's' } })
  await pausing(agent)()
  await app.settled('t1')
  t.match(await app.submit('t2', { context: { session_id: 's' } }), { status: 409, body: { code: 'session_busy_confirm', session_id: 's', waiting_task_id: 't1' } })
  const other = new ScriptedAgent({ resume: true })
  const queueing = await buildTaskApp(t, { agent: other, onBusySession: 'queue' })
  await queueing.submit('t1', { context: { session_id: 's' } })
  await pausing(other)()
  await queueing.settled('t1')
  t.match(await queueing.submit('t2', { context: { session_id: 's' } }), { status: 200 })
  t.match((await queueing.ask('GET', '/tasks/t2')).body, { status: 'pending' })
  await queueing.ask('POST', '/tasks/t1/cancel')
  t.equal((await other.called()).context.runId, 't2')
})

t.test('an instance that was made for a task is kept while it waits, and closed when it is over', async (t) => {
  const made: ScriptedAgent[] = []
  const make = (): Agent => {
    const agent = new ScriptedAgent()
    made.push(agent)
    return agent
  }
  const app = await buildTaskApp(t, { agents: { make } })
  await app.submit('t1')
  while (made.length === 0) await new Promise((resolve) => { setImmediate(resolve) })
  const [agent] = made as [ScriptedAgent]
  const execution = await agent.called()
  await execution.say(...askFor('c1'))
  execution.finish()
  await app.settled('t1')
  t.equal(agent.closed, 0)
  await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] })
  ;(await agent.called()).finish()
  await app.settled('t1')
  t.strictSame([made.length, agent.closed], [1, 1])
})

t.test('the user of a submission is believed only where nobody is known, or where that is allowed', async (t) => {
  const getPrincipal = (): { id: string } => ({ id: 'ann' })
  const users: (string | undefined)[] = []
  const agent = agentOf(async function * (_, { userId }) { users.push(userId) })
  for (const options of [{}, { getPrincipal }, { getPrincipal, trustContextUserId: true }]) {
    const app = await buildTaskApp(t, { agent, ...options })
    await app.submit('t1', { context: { user_id: 'u9' } })
    await app.settled('t1')
  }
  t.strictSame(users, ['u9', 'ann', 'u9'])
})
