import t from 'tap'
import { RunInterrupted } from '../../../../lib/agent/index.ts'
import { eventsOf, readUntil, serveApp, snapshotOf } from '../../../helpers/ag-ui-app.ts'
import { typesOf } from '../../../helpers/ag-ui-check.ts'
import { steered } from '../../../helpers/steered-agent.ts'

const STOPPED = { status: 200, body: { threadId: 'thread', stopped: true } }
const NOTHING = { status: 200, body: { threadId: 'thread', stopped: false } }

t.test('stop ends a run as cancelled after everything open is closed', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const run = await agent.next()
  run.say('half')
  run.push({ type: 'TOOL_CALL_START', replyId: 'other', toolCallId: 'c1', toolCallName: 'f' }, { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"a":' })
  await readUntil(client, ({ type }) => type === 'TOOL_CALL_ARGS')
  t.strictSame(await server.stop('thread'), STOPPED)
  await run.over
  t.match(run.context.signal.reason, { name: 'AbortError', source: 'user' })
  t.ok(run.context.signal.reason instanceof RunInterrupted)
  const rest = (await client.rest()).map(({ data }) => JSON.parse(data ?? ''))
  t.strictSame(typesOf(rest).sort(), ['RUN_FINISHED', 'TEXT_MESSAGE_END', 'TOOL_CALL_END'].sort())
  t.strictSame(rest.at(-1), { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome: { type: 'cancelled' } })
  t.match((await server.host.engine.lastOf({}, 'ag-ui', 'thread'))?.record, { state: 'cancelled', end: { kind: 'cancelled' } })
})

t.test('clients before 1.0 are told by RUN_ERROR CANCELLED, or by a bare RUN_FINISHED', async (t) => {
  const agent = steered()
  for (const [legacyCancel, terminal] of [['error', { type: 'RUN_ERROR', code: 'CANCELLED', message: String }], ['finished', { type: 'RUN_FINISHED', outcome: undefined }]] as const) {
    const server = await serveApp(t, { agent, legacyCancel })
    const client = await server.run({ protocolVersion: undefined })
    await agent.next()
    await server.stop('thread')
    t.match((await eventsOf(client)).at(-1), terminal)
  }
})

t.test('stopping twice, or what is over, or what never was, says that nothing was stopped', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  t.strictSame(await server.stop('thread'), NOTHING)
  const client = await server.run()
  await agent.next()
  const answers = await Promise.all([server.stop('thread'), server.stop('thread')])
  t.ok(answers.some(({ body }) => (body as { stopped: boolean }).stopped))
  t.equal((await eventsOf(client)).filter(({ type }) => type === 'RUN_FINISHED').length, 1)
  t.strictSame(await server.stop('thread'), NOTHING)
})

t.test('stop works with nobody connected', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, onDisconnect: 'continue' })
  const client = await server.run()
  const run = await agent.next()
  await readUntil(client, ({ type }) => type === 'RUN_STARTED')
  await client.destroy()
  t.strictSame(await server.stop('thread'), STOPPED)
  await run.over
  t.match((await snapshotOf(await server.rejoin({ threadId: 'thread' }))).at(-1), { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
})

t.test('a named run is stopped only if it is the active one', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const run = await agent.next()
  t.strictSame(await server.stop('thread', { runId: 'other' }), NOTHING)
  t.equal(run.context.signal.aborted, false)
  t.strictSame(await server.stop('thread', { runId: 'run' }), STOPPED)
  t.equal((await eventsOf(client)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('stop does not wait longer than cancelGraceMs for an agent that does not listen', async (t) => {
  const agent = steered({ deaf: true })
  const server = await serveApp(t, { agent, cancelGraceMs: 20 })
  const client = await server.run()
  const run = await agent.next()
  t.strictSame(await server.stop('thread'), STOPPED)
  t.match((await eventsOf(client)).at(-1), { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  run.end()
  await run.over
})

t.test('a run that waits its turn can be stopped, and never reaches its agent', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, concurrency: 'queue' })
  const first = await server.run()
  const running = await agent.next()
  const second = await server.run({ runId: 'second' })
  t.strictSame(await server.stop('thread', { runId: 'second' }), STOPPED)
  const events = await eventsOf(second)
  t.match(events.at(-1), { type: 'RUN_FINISHED', runId: 'second', outcome: { type: 'cancelled' } })
  t.equal(agent.runs.length, 1)
  running.end()
  t.equal((await eventsOf(first)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a run that takes longer than runTimeoutMs ends with TIMEOUT_ERROR after everything open is closed', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, runTimeoutMs: 50 })
  const client = await server.run()
  const run = await agent.next()
  run.say('half')
  const events = await eventsOf(client)
  await run.over
  t.strictSame(typesOf(events), ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_ERROR'])
  t.match(events.at(-1), { type: 'RUN_ERROR', code: 'TIMEOUT_ERROR', timestamp: Number })
  t.match((await server.host.engine.lastOf({}, 'ag-ui', 'thread'))?.record, { state: 'failed', end: { kind: 'timeout' } })
})

t.test('a timeout does not wait for an agent that does not listen', async (t) => {
  const agent = steered({ deaf: true })
  const server = await serveApp(t, { agent, runTimeoutMs: 20, cancelGraceMs: 20 })
  const client = await server.run()
  const run = await agent.next()
  t.match((await eventsOf(client)).at(-1), { type: 'RUN_ERROR', code: 'TIMEOUT_ERROR' })
  run.fail(new Error('late'))
  await run.over
})

t.test('an agent that ends in good order after an abort of its own is told as cancelled', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const run = await agent.next()
  run.fail(new RunInterrupted('tool', { message: 'enough' }))
  t.match((await eventsOf(client)).at(-1), { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
})
