import { type Socket } from 'node:net'
import t from 'tap'
import { AgentError } from '../../../../lib/agent/index.ts'
import { agentOf, pause } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, serveTasks, taskEvents, type TaskApp, typesOf } from '../../../helpers/task-app.ts'
import { connect } from '../../../helpers/sse-client.ts'

t.test('a finished task gives its result to snapshot, wait and list alike', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  const execution = await agent.called()
  await execution.say({ type: 'TEXT_BLOCK_DELTA', blockId: 'a', delta: 'one' }, { type: 'TEXT_BLOCK_END', blockId: 'a' }, { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'two' })
  execution.finish()
  t.match(await app.settled('t1'), { status: 200, body: { task_id: 't1', status: 'success', result: 'one\ntwo' } })
  const { body } = await app.ask('GET', '/tasks/t1')
  t.match(body, { task_id: 't1', status: 'success', result: 'one\ntwo', run_count: 1, last_seq: 3, oldest_seq: 1, cancel_requested: false, finished_at: /Z$/ })
  t.match((await app.ask('GET', '/tasks')).body, { tasks: [{ task_id: 't1', status: 'success', result: 'one\ntwo' }] })
  t.match((await app.ask('GET', '/tasks/t1/wait?timeout_seconds=0')).body, { status: 'success', result: 'one\ntwo' })
})

t.test('a snapshot is sent once for as long as nothing changes', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  const execution = await agent.called()
  await execution.asked()
  const { headers } = await app.ask('GET', '/tasks/t1')
  const etag = String(headers.etag)
  t.match(await app.ask('GET', '/tasks/t1', undefined, { 'if-none-match': etag }), { status: 304, body: {} })
  t.match(await app.ask('GET', '/tasks/t1', undefined, { 'if-none-match': `"x", W/${etag}` }), { status: 304 })
  execution.finish()
  await app.settled('t1')
  t.match(await app.ask('GET', '/tasks/t1', undefined, { 'if-none-match': etag }), { status: 200, body: { status: 'success' } })
})

t.test('every failure has a text and a code, and says no more than it should (D17)', async (t) => {
  const agents: Record<string, { readonly throws: unknown, readonly code: string, readonly error: RegExp | string }> = {
    hidden: { throws: new Error('secret'), code: 'internal_error', error: /^The agent failed\. \(error id [0-9a-f-]{36}\)$/ },
    nothing: { throws: undefined, code: 'internal_error', error: /error id/ },
    told: { throws: new AgentError({ code: 'rate_limited', message: 'Try later.', expose: true }), code: 'rate_limited', error: 'Try later.' }
  }
  const app = await buildTaskApp(t, { agents: Object.fromEntries(Object.entries(agents).map(([id, { throws }]) => [id, agentOf(async function * () { throw throws })])) })
  for (const [id, { code, error }] of Object.entries(agents)) {
    await app.submit(id, { agent_id: id })
    t.match((await app.settled(id)).body, { task_id: id, status: 'error', code, error })
    t.match((await app.ask('GET', `/tasks/${id}`)).body, { status: 'error', code, error })
    const { payload } = await app.app.inject(`/tasks/${id}/events`)
    t.notOk(payload.includes('secret'))
    t.match(payload, /event: RUN_ERROR\ndata: \{"seq":\d+,"type":"RUN_ERROR"/)
  }
  t.ok(app.logs.some(({ err }) => err?.message === 'secret'), 'the operator sees it')
})

t.test('with exposeErrors clients see what was thrown', async (t) => {
  const app = await buildTaskApp(t, { agent: agentOf(async function * () { throw new Error('the reason') }), exposeErrors: true })
  await app.submit('t1')
  t.match((await app.settled('t1')).body, { status: 'error', code: 'internal_error', error: 'the reason' })
})

t.test('an interrupted agent and one that takes too long have failed (D10)', async (t) => {
  const app = await buildTaskApp(t, {
    agents: {
      stops: agentOf(async function * () { yield { type: 'AGENT_END', reason: 'INTERRUPTED' } }),
      limited: agentOf(async function * () { yield { type: 'EXCEED_MAX_ITERS', maxIters: 1, currentIter: 1 } }),
      slow: new ScriptedAgent()
    },
    runTimeoutMs: 20
  })
  for (const id of ['stops', 'limited', 'slow']) await app.submit(id, { agent_id: id })
  t.match((await app.settled('stops')).body, { status: 'error', code: 'interrupted' })
  t.match((await app.settled('limited')).body, { status: 'success', stop_reason: 'MAX_ITERATIONS' })
  t.match((await app.settled('slow')).body, { status: 'error', code: 'run_timeout' })
})

t.test('a task that nobody knows is answered alike on every verb (D9)', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), subscribeGraceMs: 0 })
  const body = { error: 'task not found', code: 'task_not_found' }
  for (const id of ['t1', 'x'.repeat(100), 'a%20b', 'x:cancel', '%00']) {
    t.match(await app.ask('GET', `/tasks/${id}`), { status: 404, body: { ...body, status: 'error' } }, id)
    t.match(await app.ask('GET', `/tasks/${id}/wait`), { status: 404, body }, id)
    t.match(await app.ask('GET', `/tasks/${id}/events`), { status: 404, body }, id)
    t.match(await app.ask('POST', `/tasks/${id}/cancel`), { status: 404, body }, id)
    t.match(await app.ask('POST', `/tasks/${id}/resume`, { decisions: [] }), { status: 404, body }, id)
    t.match(await app.ask('DELETE', `/tasks/${id}`), { status: 404, body }, id)
  }
  t.equal((await app.ask('GET', `/tasks/${'x'.repeat(101)}`)).status, 414)
  for (const path of ['/tasks/t1', '/tasks/t1:bogus', '/tasks/t1/bogus']) t.equal((await app.ask('POST', path, {})).status, 404, `no such route: ${path}`)
})

t.test('clients of the reference can have its answers for unknown tasks', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), compat: 'reference' })
  t.strictSame((await app.ask('GET', '/tasks/t1')).body, { task_id: 't1', status: 'error', error: 'task not found' })
  t.match(await app.ask('GET', '/tasks/t1/wait'), { status: 200, body: { status: 'error', error: 'task not found' } })
  t.match(await app.ask('POST', '/tasks/t1/cancel'), { status: 200 })
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [] }), { status: 409, body: { error: 'task is not awaiting confirmation: t1' } })
})

t.test('a cancel stops the agent, and nothing is told after it (D1)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text('a')
  await execution.say({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'ls' })
  t.match(await app.ask('POST', '/tasks/t1/cancel'), { status: 200, body: { task_id: 't1', status: 'cancelled', cancel_requested: true } })
  t.equal(execution.context.signal.aborted, true)
  t.equal(execution.returns, 1)
  t.match((await app.ask('GET', '/tasks/t1')).body, { status: 'cancelled', cancel_requested: true })
  t.match((await app.settled('t1')).body, { status: 'cancelled' })
  const again = await app.ask('POST', '/tasks/t1/cancel')
  t.match(again, { status: 200, body: { status: 'cancelled', already_terminal: true } })
  const { payload } = await app.app.inject('/tasks/t1/events')
  t.match(payload, /event: STATUS\ndata: \{"seq":\d+,"type":"STATUS","taskId":"t1","agentId":"default","status":"cancelled"\}\n\n$/)
  t.equal(agent.executions.length, 1)
})

t.test('a cancel takes whatever body comes with it', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  const bodies: (readonly [body: string | undefined, headers: Record<string, string>])[] = [
    [undefined, {}], ['', { 'content-type': 'application/json' }], ['null', { 'content-type': 'application/json' }], ['{}', { 'content-type': 'application/json' }],
    [undefined, { 'content-length': '0' }]
  ]
  for (const [index, [body, headers]] of bodies.entries()) {
    await app.submit(`t${index}`)
    const client = await connect('POST', `/tasks/t${index}/cancel`, { port: app.port, headers, ...body !== undefined && { body } })
    t.match(await client.json(), { status: 'cancelled' }, String(index))
  }
})

t.test('a paused task is cancelled too, and a finished one stays as it is', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  await pauseTask(app, agent, 't1')
  t.match((await app.ask('POST', '/tasks/t1/cancel')).body, { status: 'cancelled', cancel_requested: true })
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] }), { status: 409, body: { code: 'not_awaiting' } })
  await app.submit('t2')
  ;(await agent.called()).finish()
  await app.settled('t2')
  t.match((await app.ask('POST', '/tasks/t2/cancel')).body, { status: 'success', cancel_requested: false, already_terminal: true })
})

t.test('a wait ends with the task, at its pause, or when its time is up', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  t.match(await app.ask('GET', '/tasks/t1/wait?timeout_seconds=0'), { status: 200, body: { task_id: 't1', status: 'running' } })
  t.match(await app.ask('GET', '/tasks/t1/wait?timeout_seconds=1'), {
    status: 200, body: { task_id: 't1', status: 'error', error: 'wait timeout after 1000 ms', code: 'wait_timeout', timed_out: true, task_status: 'running' }
  }, 'a timeout is told apart from a failure (D9)')
  const waiting = app.settled('t1')
  await pauseTask(app, agent, 't1')
  t.match((await waiting).body, { task_id: 't1', status: 'awaiting_confirm', pending_confirms: [{ toolCallId: 'c1' }] })
  for (const value of ['', '-1', 'abc', '1.5', '1e3']) t.match(await app.ask('GET', `/tasks/t1/wait?timeout_seconds=${value}`), { status: 400, body: { code: 'invalid_timeout' } }, value)
})

t.test('a wait that wants to be longer than the longest is shortened', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), maxWaitSeconds: 1 })
  await app.submit('t1')
  t.match((await app.ask('GET', '/tasks/t1/wait?timeout_seconds=7200')).body, { error: 'wait timeout after 1000 ms', timed_out: true })
  t.match((await app.ask('GET', '/tasks/t1/wait')).body, { error: 'wait timeout after 1000 ms', timed_out: true })
})

t.test('a wait ends with its client', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1')
  const client = connect('GET', '/tasks/t1/wait', { port: app.port }).catch((error: NodeJS.ErrnoException) => error.code)
  const [socket] = await connected(app)
  socket?.destroy()
  t.equal(await client, 'ECONNRESET')
  ;(await agent.called()).finish()
  await app.settled('t1')
})

t.test('tasks are listed newest first, page by page, and filtered (D21)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agents: { a: agent, b: agent }, host: { defaultAgent: 'a' } })
  for (let index = 0; index < 7; index++) {
    await app.submit(`t${index}`, { agent_id: index % 2 === 0 ? 'a' : 'b', context: { session_id: `s${index % 3}` } })
    ;(await agent.called()).finish()
    await app.settled(`t${index}`)
  }
  await app.submit('running')
  const list = async (query: string): Promise<string[]> => ((await app.ask('GET', `/tasks?${query}`)).body.tasks as { task_id: string }[]).map(({ task_id: id }) => id)
  const paged: string[] = []
  for (let cursor: unknown; ;) {
    const { body } = await app.ask('GET', `/tasks?limit=3${typeof cursor === 'string' ? `&cursor=${cursor}` : ''}`)
    paged.push(...(body.tasks as { task_id: string }[]).map(({ task_id: id }) => id))
    cursor = body.next_cursor
    if (cursor === undefined) break
  }
  t.strictSame([...paged].sort(), ['running', 't0', 't1', 't2', 't3', 't4', 't5', 't6'])
  t.strictSame((await list('agent_id=b')).sort(), ['t1', 't3', 't5'])
  t.strictSame((await list('session_id=s1')).sort(), ['t1', 't4'])
  t.strictSame(await list('status=running'), ['running'])
  t.equal((await list('status=success')).length, 7)
  t.strictSame(await list('status=cancelled'), [])
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'status=odd', 'limit=1&limit=2']) t.match(await app.ask('GET', `/tasks?${query}`), { status: 400, body: { code: 'invalid_query' } }, query)
  t.match(await app.ask('GET', '/tasks?cursor=odd'), { status: 400, body: { code: 'invalid_cursor' } })
})

t.test('only a task that is over is deleted, and its id is free then (D21)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1')
  t.match(await app.ask('DELETE', '/tasks/t1'), { status: 409, body: { code: 'not_terminal' } })
  ;(await agent.called()).finish()
  await app.settled('t1')
  t.match(await app.ask('DELETE', '/tasks/t1'), { status: 204, body: {} })
  t.match(await app.ask('GET', '/tasks/t1'), { status: 404 })
  t.match(await app.submit('t1'), { status: 200, body: { status: 'pending' } })
})

t.test('another principal\'s task is one that does not exist (D17)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, {
    agent,
    subscribeGraceMs: 0,
    getPrincipal: ({ headers }) => typeof headers['x-user'] === 'string' ? { id: headers['x-user'] } : undefined
  })
  const ann = { 'x-user': 'ann' }
  const bob = { 'x-user': 'bob' }
  t.match(await app.submit('t1'), { status: 401, body: { code: 'unauthenticated' } })
  await app.submit('t1', { context: { user_id: 'root' } }, ann)
  t.equal((await agent.called()).context.userId, 'ann', 'the principal is the user')
  for (const [method, path, body] of [['GET', '/tasks/t1'], ['GET', '/tasks/t1/wait'], ['GET', '/tasks/t1/events'], ['POST', '/tasks/t1/cancel'], ['POST', '/tasks/t1/resume', { decisions: [] }], ['DELETE', '/tasks/t1']] as const) {
    t.match(await app.ask(method, path, body, bob), { status: 404, body: { code: 'task_not_found' } }, path)
  }
  t.match((await app.ask('GET', '/tasks', undefined, bob)).body, { tasks: [] })
  t.match(await app.submit('t1', {}, bob), { status: 200, body: { status: 'pending' } }, 'ids are the owner\'s own')
  t.match((await app.ask('GET', '/tasks/t1', undefined, ann)).body, { status: 'running' })
})

t.test('agents are listed by name', async (t) => {
  const app = await buildTaskApp(t, { agents: { a: { ...agentOf(async function * () {}), description: 'Does things.' }, b: () => new ScriptedAgent() } })
  t.strictSame((await app.ask('GET', '/agents')).body, { agents: [{ agent_id: 'a', name: 'made', description: 'Does things.' }, { agent_id: 'b', name: 'b' }] })
})

t.test('a closing server ends its streams and waits, and takes no more tasks (D21)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, host: { shutdownMs: 200 } })
  await app.submit('running')
  await app.submit('paused')
  await pauseTask(app, agent, 'paused', 1)
  const streams = [await app.events('running'), await app.events('paused')]
  const waiting = app.settled('running')
  await app.app.close()
  t.match((await waiting).body, { status: 'error', code: 'interrupted' })
  t.strictSame(typesOf(taskEvents(await streams[0]?.rest() ?? [])), ['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'])
  const frames = await streams[1]?.rest() ?? []
  t.strictSame(frames.at(-1)?.comments, ['shutdown'], 'a paused one waits on')
  t.equal(frames.at(-1)?.id, '5', 'with the cursor to come back with')
})

async function pauseTask ({ host }: TaskApp, agent: ScriptedAgent, taskId: string, skip = 0): Promise<void> {
  const run = await host.engine.find({}, 'agent-protocol', taskId)
  if (run === undefined) throw new Error(`no task ${taskId}`)
  for (let index = 0; index < skip; index++) await agent.called()
  await pause(agent, run)
}

async function connected ({ app }: TaskApp): Promise<Socket[]> {
  return await new Promise((resolve) => { app.server.once('request', (request: { readonly socket: Socket }) => { resolve([request.socket]) }) })
}
