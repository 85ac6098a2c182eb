import t from 'tap'
import { textOf } from '../../../../lib/agent/index.ts'
import { pause } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, type TaskApp } from '../../../helpers/task-app.ts'

t.test('a submission answers at once, and its agent gets the input as one user message', async (t) => {
  const agent = new ScriptedAgent()
  const { submit, ask } = await buildTaskApp(t, { agent })
  t.strictSame(await submit('t1', { input: 'compare' }).then(({ status, body }) => ({ status, body })), { status: 200, body: { task_id: 't1', status: 'pending' } })
  const { input, context } = await agent.called()
  t.match(input, { history: 'append', messages: [{ role: 'USER', content: [{ type: 'text', text: 'compare' }] }], resume: undefined })
  t.match({ sessionId: context.sessionId, runId: context.runId, protocol: context.protocol }, { sessionId: 't1', runId: 't1', protocol: 'agent-protocol' })
  t.match((await ask('GET', '/tasks/t1')).body, { task_id: 't1', status: 'running', agent_id: 'default', session_id: 't1', run_count: 1, cancel_requested: false })
})

t.test('each body that cannot be used is refused with its own code, and nothing is started', async (t) => {
  const agent = new ScriptedAgent()
  const { ask } = await buildTaskApp(t, { agent, requireInput: true })
  const deep = (depth: number): unknown => depth === 0 ? 1 : { a: deep(depth - 1) }
  const rows: (readonly [name: string, body: unknown, status: number, code: string])[] = [
    ['no id', { input: 'x' }, 400, 'task_id_required'],
    ['a blank id', { task_id: ' ', input: 'x' }, 400, 'task_id_required'],
    ['a null id', { task_id: null, input: 'x' }, 400, 'task_id_required'],
    ['a bad charset', { task_id: 'a b', input: 'x' }, 400, 'invalid_task_id'],
    ['a slash', { task_id: 'a/b', input: 'x' }, 400, 'invalid_task_id'],
    ['a NUL', { task_id: 'a\0b', input: 'x' }, 400, 'invalid_task_id'],
    ['a line break', { task_id: 'a\ndata: forged', input: 'x' }, 400, 'invalid_task_id'],
    ['one dot', { task_id: '.', input: 'x' }, 400, 'invalid_task_id'],
    ['two dots', { task_id: '..', input: 'x' }, 400, 'invalid_task_id'],
    ['a long id', { task_id: 'x'.repeat(101), input: 'x' }, 400, 'invalid_task_id'],
    ['an object as id', { task_id: {}, input: 'x' }, 400, 'invalid_task_id'],
    ['no input where one is required', { task_id: 't' }, 400, 'input_required'],
    ['an agent id that is an object', { task_id: 't', input: 'x', agent_id: {} }, 400, 'invalid_body'],
    ['a deep context', { task_id: 't', input: 'x', context: deep(17) }, 400, 'invalid_context'],
    ['a large context', { task_id: 't', input: 'x', context: { a: 'x'.repeat(65_536) } }, 400, 'invalid_context'],
    ['no JSON', '{"task_id":', 400, 'invalid_body'],
    ['an empty body', '', 400, 'invalid_body'],
    ['a list', [], 400, 'invalid_body'],
    ['null', 'null', 400, 'invalid_body'],
    ['a text', '"x"', 400, 'invalid_body'],
    ['a prototype', '{"task_id":"t","__proto__":{"a":1}}', 400, 'invalid_body'],
    ['deny rules that are no list', { task_id: 't', input: 'x', context: { deny_rules: {} } }, 400, 'invalid_deny_rules'],
    ['a deny rule without a tool', { task_id: 't', input: 'x', context: { deny_rules: [{ behavior: 'DENY' }] } }, 400, 'invalid_deny_rules'],
    ['an allow rule', { task_id: 't', input: 'x', context: { deny_rules: [{ tool_name: 'a', behavior: 'ALLOW' }] } }, 400, 'invalid_deny_rules'],
    ['a deny rule that is a text', { task_id: 't', input: 'x', context: { deny_rules: ['a'] } }, 400, 'invalid_deny_rules'],
    ['a deny rule with an odd content', { task_id: 't', input: 'x', context: { deny_rules: [{ tool_name: 'a', behavior: 'DENY', rule_content: 5 }] } }, 400, 'invalid_deny_rules'],
    ['too many deny rules', { task_id: 't', input: 'x', context: { deny_rules: Array.from({ length: 1_001 }, () => ({ tool_name: 'a', behavior: 'DENY' })) } }, 400, 'invalid_deny_rules']
  ]
  for (const [name, body, status, code] of rows) {
    const answer = await ask('POST', '/tasks', body)
    t.equal(answer.status, status, name)
    t.equal(answer.body.code, code, name)
    t.type(answer.body.error, 'string', name)
  }
  t.match(await ask('POST', '/tasks', 'task_id=t', { 'content-type': 'text/plain' }), { status: 415, body: { code: 'unsupported_media_type' } })
  t.match(await ask('GET', '/tasks'), { status: 200, body: { tasks: [] } })
  t.equal(agent.executions.length, 0)
})

t.test('what the reference takes is taken', async (t) => {
  const agent = new ScriptedAgent()
  const { ask } = await buildTaskApp(t, { agent })
  const rows: (readonly [body: Record<string, unknown>, text: string])[] = [
    [{ task_id: 5, input: null }, ''],
    [{ task_id: 'no-input' }, ''],
    [{ task_id: 'number', input: 7 }, '7'],
    [{ task_id: 'object', input: { a: 1 } }, '{"a":1}'],
    [{ task_id: 'ctx', input: 'x', context: 'text' }, 'x'],
    [{ task_id: 'x'.repeat(100), input: 'x', context: null, agent_id: null }, 'x'],
    [{ task_id: 'A-z.0_9:~-', input: 'x' }, 'x']
  ]
  for (const [body, text] of rows) {
    t.match(await ask('POST', '/tasks', body), { status: 200, body: { task_id: String(body.task_id), status: 'pending' } })
    const { input } = await agent.called()
    t.equal(textOf(input.messages[0]?.content ?? []), text)
  }
})

t.test('the same submission again starts nothing and says how the task stands', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  const { submit } = app
  const same = { context: { detail: 'full', attributes: { a: 1, b: 2 } } }
  await submit('t1', same)
  t.match(await submit('t1', { context: { attributes: { b: 2, a: 1 }, detail: 'full' } }), { status: 200, body: { task_id: 't1', status: 'running', duplicate: true } }, 'in whatever order its members come')
  t.match(await submit('t1', { ...same, input: 'other' }), { status: 409, body: { code: 'task_conflict', task_id: 't1', status: 'running' } })
  await pause(agent, await runOf(app, 't1'))
  t.match(await submit('t1', same), { status: 200, body: { status: 'awaiting_confirm', duplicate: true } }, 'a pause is not lost (D5)')
  t.match((await app.ask('GET', '/tasks/t1')).body.pending_confirms, [{ toolCallId: 'c1', toolName: 'delete', toolInputJson: '{"path":"/tmp/a"}' }])
  await app.ask('POST', '/tasks/t1/cancel')
  t.match(await submit('t1', same), { status: 409, body: { error: 'task_id already finished: t1', code: 'task_finished', status: 'cancelled', same_request: true } })
  t.match(await submit('t1'), { status: 409, body: { code: 'task_finished', same_request: false } })
  t.equal(agent.executions.length, 1)
})

t.test('of many identical submissions at once one starts (D21)', async (t) => {
  const agent = new ScriptedAgent()
  const { submit } = await buildTaskApp(t, { agent })
  const answers = await Promise.all(Array.from({ length: 20 }, () => submit('t1')))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(answers.filter(({ body }) => body.duplicate === undefined).length, 1)
  await agent.called()
  t.equal(agent.executions.length, 1)
})

t.test('an agent is found by its name, or else the default one answers', async (t) => {
  const worker = new ScriptedAgent()
  const other = new ScriptedAgent()
  const { submit } = await buildTaskApp(t, { agents: { worker, other }, host: { defaultAgent: 'other' } })
  await submit('t1', { agent_id: 'worker' })
  await submit('t2', { agent_id: 'nobody' })
  await submit('t3')
  await worker.called()
  await other.called()
  await other.called()
  t.equal(worker.executions.length, 1)
  t.equal(other.executions.length, 2)
})

t.test('without an agent for it a task fails, and says so', async (t) => {
  const { submit, settled } = await buildTaskApp(t, { agents: { a: new ScriptedAgent(), b: new ScriptedAgent() } })
  t.match(await submit('t1', { agent_id: 'nobody' }), { status: 200, body: { status: 'pending' } })
  t.match(await settled('t1'), { status: 200, body: { status: 'error', code: 'agent_not_found', error: 'no agent for agent_id=nobody' } })
})

t.test('a busy server says when to come back (D21)', async (t) => {
  const agent = new ScriptedAgent()
  const { submit, ask } = await buildTaskApp(t, { agent, maxConcurrentRuns: 1, maxQueue: 1 })
  await submit('t1')
  const first = await agent.called()
  await submit('t2')
  t.match((await ask('GET', '/tasks/t2')).body, { status: 'pending' }, 'it waits for a place')
  t.match((await ask('GET', '/tasks?status=pending')).body, { tasks: [{ task_id: 't2' }] })
  t.match(await submit('t3'), { status: 429, body: { code: 'overloaded', task_id: 't3' }, headers: { 'retry-after': /^[1-5]$/ } })
  t.match(await ask('GET', '/tasks/t3'), { status: 404 }, 'nothing of it is kept')
  first.finish()
  t.ok(await agent.called(), 'the place goes to the next one')
  t.match(await submit('t3'), { status: 200 })
  t.match(await ask('POST', '/tasks/t3/cancel'), { body: { status: 'cancelled' } }, 'and can be given up while it waits')
  t.match(await submit('t4'), { status: 200 })
})

t.test('a store that is away is told, and nothing was started (D11)', async (t) => {
  const agent = new ScriptedAgent()
  const { submit, host, ask } = await buildTaskApp(t, { agent })
  const create = host.store.runs.create
  host.store.runs.create = () => Promise.reject(Object.assign(new Error('away'), { code: 'AGT_ERR_STORE_UNAVAILABLE', statusCode: 503 }))
  t.match(await submit('t1'), { status: 503, body: { code: 'store_unavailable' }, headers: { 'retry-after': /^[1-5]$/ } })
  host.store.runs.create = create
  t.equal(agent.executions.length, 0)
  t.match(await ask('GET', '/tasks/t1'), { status: 404 })
  t.match(await submit('t1'), { status: 200, body: { status: 'pending' } }, 'the id is free')
})

async function runOf ({ host }: TaskApp, taskId: string): Promise<NonNullable<Awaited<ReturnType<typeof host.engine.find>>>> {
  const run = await host.engine.find({}, 'agent-protocol', taskId)
  if (run === undefined) throw new Error(`no task ${taskId}`)
  return run
}
