import t from 'tap'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { approving, noted } from '../../helpers/approving-agent.ts'
import { steered } from '../../helpers/steered-agent.ts'
import { connect } from '../../helpers/sse-client.ts'
import { memory, serveRuntime } from './runtime.ts'

const user = (content: string, id = 'u1'): object => ({ id, role: 'user', content })

t.test('a reloaded page is told the running answer from its start by the runtime, which asks nobody', async (t) => {
  const agent = steered()
  const runtime = await serveRuntime(t, await serveApp(t, { agent }))
  const page = runtime.page('reload', [user('Hi')])
  const heard = page.seen('TEXT_MESSAGE_CONTENT')
  const running = page.send({ runId: 'one' })
  const run = await agent.next()
  run.say('Half ')
  await heard
  const reloaded = runtime.page('reload')
  const told = reloaded.seen('TEXT_MESSAGE_CONTENT')
  const rejoined = reloaded.rejoin()
  await told
  run.say('and half.')
  run.end()
  t.match(await running, { type: 'RUN_FINISHED', runId: 'one' })
  t.match(await rejoined, { type: 'RUN_FINISHED', runId: 'one' })
  const whole = [user('Hi'), { id: 'reply', role: 'assistant', content: 'Half and half.' }]
  t.strictSame([page.transcript, reloaded.transcript], [whole, whole])
  t.equal(runtime.forwarded.length, 1)
})

t.test('the runtime drops the ids of frames, and the cursor of a page that has one: it always tells the whole thread', async (t) => {
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([]) }))
  await runtime.page('ids', [user('Hi')]).send({ runId: 'one' })
  const body = { threadId: 'ids', runId: 'any', messages: [], tools: [], context: [], state: {}, forwardedProps: {} }
  const port = Number(new URL(runtime.url).port)
  const all = await (await connect('POST', '/api/agent/ours/connect', { port, body })).rest()
  t.strictSame(all.map(({ id, data }) => [id, (JSON.parse(data ?? '') as { type: string }).type]), [
    'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'
  ].map((type) => [undefined, type]))
  const cursor = { headers: { 'last-event-id': '1.3' }, body: { ...body, lastSeenEventId: '1.3' } }
  t.strictSame(await (await connect('POST', '/api/agent/ours/connect', { port, ...cursor })).rest(), all)
})

t.test('a restarted runtime knows no thread', async (t) => {
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([]) }))
  const page = runtime.page('forgotten', [user('Hi')])
  await page.send()
  memory.clearThreads()
  const reloaded = runtime.page('forgotten')
  t.equal(await reloaded.rejoin(), undefined)
  t.strictSame(reloaded.transcript, [])
})

t.test('a restarted runtime that rejoins at the server tells the running answer, and then the live one', async (t) => {
  const agent = steered()
  const runtime = await serveRuntime(t, await serveApp(t, { agent, onDisconnect: 'continue' }), true)
  const page = runtime.page('server', [user('Hi')])
  const heard = page.seen('TEXT_MESSAGE_CONTENT')
  const running = page.send({ runId: 'one' })
  const run = await agent.next()
  run.say('Half ')
  await heard
  memory.clearThreads()
  const reloaded = runtime.page('server')
  const told = reloaded.seen('TEXT_MESSAGE_CONTENT')
  const rejoined = reloaded.rejoin()
  await told
  run.say('and half.')
  run.end()
  t.match(await rejoined, { type: 'RUN_FINISHED', runId: 'one' })
  t.strictSame(reloaded.transcript, [user('Hi'), { id: 'reply', role: 'assistant', content: 'Half and half.' }])
  await running
})

t.test('a restarted runtime that rejoins at the server shows the transcript and the open question', async (t) => {
  const tool = noted('del')
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([tool]) }), true)
  await runtime.page('open', [user('del {"path":"a"}')]).send({ runId: 'one' })
  memory.clearThreads()
  const reloaded = runtime.page('open')
  t.match(await reloaded.rejoin(), { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: 'reply-u1:u1-1', toolCallId: 'u1-1' }] } })
  t.match(reloaded.pendingInterrupts, [{ id: 'reply-u1:u1-1' }])
  t.match(reloaded.transcript, [user('del {"path":"a"}'), { id: 'reply-u1', toolCalls: [{ id: 'u1-1' }] }])
  t.match(await reloaded.send({ runId: 'two', resume: [{ interruptId: 'reply-u1:u1-1', status: 'resolved', payload: { approved: true } }] }), { type: 'RUN_FINISHED', runId: 'two' })
  t.strictSame(tool.ran, [{ path: 'a' }])
})
