import t from 'tap'
import { type AgentEventInit, ToolSuspended } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { askFor } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, type TaskApp, taskEvents, typesOf } from '../../../helpers/task-app.ts'
import { parseFrames } from '../../../helpers/sse-client.ts'

const CALLS = 'delete {"path":"/a"}\ndelete {"path":"/b"}'

t.test('approved calls run once with what was asked, denied ones not at all', async (t) => {
  const tool = noted('delete')
  const agent = approving([tool])
  const app = await buildTaskApp(t, { agent })
  const ids = await paused(app, 't1', CALLS)
  const answer = await app.ask('POST', '/tasks/t1/resume', {
    decisions: [{ toolCallId: ids[0], approved: true }, { tool_call_id: ids[1], approved: false, reason: ' prod is frozen ' }]
  })
  t.strictSame([answer.status, answer.body], [200, { task_id: 't1', status: 'running', approved: [ids[0]], denied: [ids[1]], unknown_decisions: [] }])
  t.match((await app.settled('t1')).body, { status: 'success', result: 'Done.' })
  t.strictSame(tool.ran, [{ path: '/a' }])
  const { payload } = await app.app.inject('/tasks/t1/events')
  const results = taskEvents(parseFrames(payload)).filter(({ type }) => type === 'TOOL_RESULT')
  t.strictSame(results.map(({ toolCallId, status }) => [toolCallId, status]), [[ids[0], 'SUCCESS'], [ids[1], 'DENIED']], 'a denial has its result in the stream')
  t.equal((await app.ask('GET', '/tasks/t1')).body.run_count, 2)
})

t.test('the reason of a denial is what the agent is told; without one it is the reference\'s text', async (t) => {
  const app = await buildTaskApp(t, { agent: approving([noted('delete')]) })
  const ids = await paused(app, 't1', CALLS, { detail: 'verbose' })
  await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: ids[0], approved: false, reason: 'No.' }, { toolCallId: ids[1], approved: false, reason: '  ' }] })
  await app.settled('t1')
  const { payload } = await app.app.inject('/tasks/t1/events')
  const texts = taskEvents(parseFrames(payload)).flatMap((event) => event.eventType === 'TOOL_RESULT_TEXT_DELTA' ? [(JSON.parse(event.payload ?? '{}') as { delta: string }).delta] : [])
  t.strictSame(texts, ['No.', 'Permission denied by user'])
  t.ok(payload.includes('USER_CONFIRM_RESULT'), 'the answers are part of a verbose stream')
})

t.test('edited arguments replace the call\'s, and only with an approval', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]) })
  const ids = await paused(app, 't1', CALLS)
  await app.ask('POST', '/tasks/t1/resume', {
    decisions: [{ toolCallId: ids[0], approved: true, editedArgs: { path: '/c' } }, { toolCallId: ids[1], approved: false, edited_args: { path: '/d' } }]
  })
  await app.settled('t1')
  t.strictSame(tool.ran, [{ path: '/c' }])
})

t.test('calls without a decision are denied and named', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]) })
  const ids = await paused(app, 't1', CALLS)
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: ids[1], approved: true }, { toolCallId: 'other', approved: true }] }), {
    status: 200, body: { approved: [ids[1]], denied: [ids[0]], unknown_decisions: ['other'] }
  })
  await app.settled('t1')
  t.strictSame(tool.ran, [{ path: '/b' }])
  const again = await paused(app, 't2', CALLS)
  t.match(await app.ask('POST', '/tasks/t2/resume', { decisions: [] }), { status: 200, body: { approved: [], denied: again } }, 'an empty list denies all')
  await app.settled('t2')
  t.equal(tool.ran.length, 1)
})

t.test('the last of two decisions counts', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]) })
  const [id] = await paused(app, 't1', 'delete {"path":"/a"}')
  await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: id, approved: true }, { toolCallId: id, approved: false }] })
  await app.settled('t1')
  t.strictSame(tool.ran, [])
})

t.test('answers that cannot be used are refused, and the task waits on', async (t) => {
  const app = await buildTaskApp(t, { agent: approving([noted('delete')]) })
  const ids = await paused(app, 't1', CALLS)
  const [id] = ids
  const rows: (readonly [name: string, body: unknown, status: number, code: string])[] = [
    ['no list', {}, 400, 'invalid_decisions'],
    ['an object', { decisions: {} }, 400, 'invalid_decisions'],
    ['results that are no list', { results: 'x' }, 400, 'invalid_decisions'],
    ['no body', '', 400, 'invalid_body'],
    ['a list as body', [], 400, 'invalid_body'],
    ['a text as decision', { decisions: ['x'] }, 400, 'invalid_decision'],
    ['no id', { decisions: [{ approved: true }] }, 400, 'invalid_decision'],
    ['no answer', { decisions: [{ toolCallId: id }] }, 400, 'invalid_decision'],
    ['"true" as text', { decisions: [{ toolCallId: id, approved: 'true' }] }, 400, 'invalid_decision'],
    ['1', { decisions: [{ toolCallId: id, approved: 1 }] }, 400, 'invalid_decision'],
    ['edited arguments that are a list', { decisions: [{ toolCallId: id, approved: true, editedArgs: [] }] }, 400, 'invalid_decision'],
    ['a long reason', { decisions: [{ toolCallId: id, approved: false, reason: 'x'.repeat(2_001) }] }, 400, 'invalid_decision'],
    ['a typo', { decisions: [{ toolCallId: 'typo', approved: false }] }, 422, 'no_matching_decision'],
    ['a result for a confirmation', { results: [{ toolCallId: id, output: 'x' }] }, 422, 'wrong_kind'],
    ['an earlier pause', { decisions: [{ toolCallId: id, approved: true }], confirm_id: 'old' }, 409, 'stale_confirm']
  ]
  for (const [name, body, status, code] of rows) t.match(await app.ask('POST', '/tasks/t1/resume', body), { status, body: { code } }, name)
  const { body } = await app.ask('GET', '/tasks/t1')
  t.match(body, { status: 'awaiting_confirm', run_count: 1 })
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: ids.map((toolCallId) => ({ toolCallId, approved: true })), confirm_id: body.confirm_id }), { status: 200 })
})

t.test('rules that come with a decision reach the agent only where that is allowed', async (t) => {
  const rules = [{ tool_name: 'delete', behavior: 'allow' }]
  for (const acceptRules of [undefined, true]) {
    const agent = approving([noted('delete')])
    const app = await buildTaskApp(t, { agent, ...acceptRules !== undefined && { acceptRules } })
    const [id] = await paused(app, 't1', 'delete {"path":"/a"}')
    await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: id, approved: true, rules }] })
    await app.settled('t1')
    const [decision] = agent.inputs[1]?.resume ?? []
    t.strictSame(decision?.kind === 'confirm' ? decision.rules : 'none', acceptRules === true ? rules : undefined)
  }
})

t.test('with requireAllDecisions nothing is denied by silence', async (t) => {
  const app = await buildTaskApp(t, { agent: approving([noted('delete')]), requireAllDecisions: true })
  const ids = await paused(app, 't1', CALLS)
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: ids[0], approved: true }] }), { status: 422, body: { code: 'missing_decisions', missing: [ids[1]] } })
})

t.test('of two resumes at once one wins', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]) })
  const [id] = await paused(app, 't1', 'delete {"path":"/a"}')
  const answers = await Promise.all(Array.from({ length: 5 }, () => app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: id, approved: true }] })))
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
  t.ok(answers.every(({ status, body }) => status === 200 || body.code === 'not_awaiting'))
  await app.settled('t1')
  t.strictSame(tool.ran, [{ path: '/a' }])
})

t.test('only a task that waits is resumed, and only where that is enabled', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [] }), { status: 409, body: { code: 'not_awaiting', error: 'task is not awaiting confirmation: t1' } })
  const off = await buildTaskApp(t, { agent, hitlEnabled: false })
  t.match(await off.ask('POST', '/tasks/t1/resume', { decisions: [] }), { status: 409, body: { code: 'hitl_disabled', error: 'HITL is disabled on this server' } })
})

t.test('a server without HITL refuses what its agents ask for and goes on (7.4)', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]), hitlEnabled: false })
  await app.submit('t1', { input: CALLS })
  t.match((await app.settled('t1')).body, { status: 'success', result: 'Done.' })
  t.strictSame(tool.ran, [])
  const { payload } = await app.app.inject('/tasks/t1/events')
  t.strictSame(typesOf(taskEvents(parseFrames(payload))).filter((type) => type === 'REQUIRE_CONFIRM' || type.startsWith('RUN')), ['RUN_STARTED', 'RUN_FINISHED'])
})

t.test('an agent that asks on and on fails where nobody answers', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, hitlEnabled: false, maxAutoDenyRounds: 2 })
  await app.submit('t1')
  for (const id of ['c1', 'c2', 'c3']) {
    const execution = await agent.called()
    await execution.say(...askFor(id))
    execution.finish()
  }
  t.match((await app.settled('t1')).body, { status: 'error', code: 'confirmation_required' })
  t.strictSame(agent.executions.map(({ input }) => input.resume?.map((decision) => decision.kind === 'confirm' ? [decision.toolCallId, decision.approved] : [])), [undefined, [['c1', false]], [['c2', false]]])
})

t.test('what waits for execution elsewhere, or for an input, is told and taken in the same way (7.5)', async (t) => {
  const agent = new ScriptedAgent({ resume: true })
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  const execution = await agent.called()
  const asks: AgentEventInit[] = [
    { type: 'TOOL_CALL_START', toolCallId: 'x1', toolCallName: 'browse' }, { type: 'TOOL_CALL_END', toolCallId: 'x1' },
    { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [{ type: 'tool_use', id: 'x1', name: 'browse', input: { url: 'http://x/' } }] },
    { type: 'REQUIRE_INPUT', requests: [{ id: 'i1', reason: 'input_required', message: 'Which one?' }] }
  ]
  await execution.say(...asks)
  execution.finish()
  t.match((await app.settled('t1')).body, {
    status: 'awaiting_confirm',
    pending_confirms: [],
    pending_external: [{ toolCallId: 'x1', toolName: 'browse', toolInputJson: '{"url":"http://x/"}' }],
    pending_inputs: [{ id: 'i1', reason: 'input_required', message: 'Which one?' }]
  })
  const { payload } = await app.app.inject({ url: '/tasks/t1', headers: {} })
  t.match(JSON.parse(payload), { status: 'awaiting_confirm' })
  t.match(await app.ask('POST', '/tasks/t1/resume', { tool_results: [{ tool_call_id: 'x1', output: { title: 'X' }, state: 'SUCCESS' }], inputs: [{ id: 'i1', payload: 'the first' }] }), {
    status: 200, body: { approved: ['x1', 'i1'], denied: [] }
  })
  const { input } = await agent.called()
  t.match(input, {
    messages: [],
    history: 'append',
    resume: [
      { kind: 'result', toolCallId: 'x1', state: 'success', output: [{ type: 'text', text: '{"title":"X"}' }] }, { kind: 'input', requestId: 'i1', status: 'resolved', payload: 'the first' }
    ]
  })
})

t.test('a pause that lasts too long is denied and the task goes on, or it is cancelled', async (t) => {
  const tool = noted('delete')
  const denying = await buildTaskApp(t, { agent: approving([tool]), confirmTtlMs: 30 })
  await paused(denying, 't1', CALLS)
  const run = await denying.host.engine.find({}, 'agent-protocol', 't1')
  await run?.ended
  t.match((await denying.ask('GET', '/tasks/t1')).body, { status: 'success', result: 'Done.' })
  t.strictSame(tool.ran, [])
  const cancelling = await buildTaskApp(t, { agent: approving([tool]), confirmTtlMs: 30, onConfirmExpiry: 'cancel' })
  await paused(cancelling, 't1', CALLS)
  await (await cancelling.host.engine.find({}, 'agent-protocol', 't1'))?.ended
  t.match((await cancelling.ask('GET', '/tasks/t1')).body, { status: 'cancelled' })
})

t.test('a tool that suspends itself is not reported as success (D10)', async (t) => {
  const app = await buildTaskApp(t, { agent: approving([noted('wait', { needsApproval: false, execute: async () => { throw new ToolSuspended() } })]) })
  await app.submit('t1', { input: 'wait {"a":1}' })
  t.match((await app.settled('t1')).body, { status: 'awaiting_confirm', pending_external: [{ toolName: 'wait' }] })
})

async function paused (app: TaskApp, taskId: string, input: string, context: unknown = {}): Promise<string[]> {
  await app.submit(taskId, { input, context })
  const { body } = await app.settled(taskId)
  return (body.pending_confirms as { toolCallId: string }[]).map(({ toolCallId }) => toolCallId)
}
