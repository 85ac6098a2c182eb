import t from 'tap'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { approving, noted } from '../../helpers/approving-agent.ts'
import { scripted, steered } from '../../helpers/steered-agent.ts'
import { connect } from '../../helpers/sse-client.ts'
import { serveRuntime } from './runtime.ts'

const user = (content: string, id = 'u1'): object => ({ id, role: 'user', content })
const PAINT = { name: 'paint', description: 'Paint the page', parameters: { type: 'object', properties: { c: { type: 'string' } } } }

t.test('lists the server as an agent', async (t) => {
  const runtime = await serveRuntime(t, await serveApp(t, { agent: scripted([]) }))
  const client = await connect('GET', '/api/info', { port: Number(new URL(runtime.url).port) })
  t.match(await client.json(), { version: '1.75.0', agents: { ours: { name: 'ours' } }, mode: 'sse' })
  await runtime.page('info').send()
})

t.test('passes on authorization and x- headers, but no cookie', async (t) => {
  const seen: unknown[] = []
  const server = await serveApp(t, {
    agent: scripted([]),
    before: (app) => { app.addHook('onRequest', async ({ headers }) => { seen.push([headers.authorization, headers['x-tenant'], headers.cookie]) }) }
  })
  const page = (await serveRuntime(t, server)).page('headers', [user('Hi')])
  page.headers = { authorization: 'Bearer 1', 'x-tenant': 'two', cookie: 'three=3' }
  t.match(await page.send(), { type: 'RUN_FINISHED' })
  t.strictSame(seen, [['Bearer 1', 'two', undefined]])
})

t.test('passes text on whole, and the next turn after it', async (t) => {
  const server = await serveApp(t, {
    agents: { one: scripted(['Hel', 'lo, ', 'you.'].map((delta) => ({ type: 'TEXT_BLOCK_DELTA', replyId: 'r1', blockId: 'text', delta }))), two: approving([]) },
    defaultAgent: 'one'
  })
  const runtime = await serveRuntime(t, server)
  const page = runtime.page('text', [user('Hi')])
  t.match(await page.send({ runId: 'one' }), { type: 'RUN_FINISHED', runId: 'one' })
  t.strictSame(page.events.flatMap(({ type, delta }) => type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []), ['Hel', 'lo, ', 'you.'])
  t.strictSame(page.transcript, [user('Hi'), { id: 'r1', role: 'assistant', content: 'Hello, you.' }])
  page.addMessage(user('More', 'u2') as never)
  t.match(await page.send({ runId: 'two', forwardedProps: { agentId: 'two' } }), { type: 'RUN_FINISHED', runId: 'two' })
  t.strictSame(page.transcript.slice(2), [user('More', 'u2'), { id: 'reply-u2', role: 'assistant', content: 'Tools: ' }])
})

t.test('shows a call of the server\'s tool and its result', async (t) => {
  const tool = noted('look', { needsApproval: false })
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([tool]) }))
  const page = runtime.page('tool', [user('look {"at":"sky"}')])
  t.match(await page.send(), { type: 'RUN_FINISHED' })
  t.match(page.transcript.slice(1), [
    { id: 'reply-u1', role: 'assistant', toolCalls: [{ id: 'u1-1', type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }] },
    { role: 'tool', toolCallId: 'u1-1', content: 'look ok' },
    { role: 'assistant', content: 'Done.' }
  ])
  t.equal(page.transcript.length, 4)
  t.strictSame(tool.ran, [{ at: 'sky' }])
})

t.test('leaves the page its own tool, and goes on with its result', async (t) => {
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([]) }))
  const page = runtime.page('paint', [user('paint {"c":"red"}')])
  const last = await page.send({ runId: 'one', tools: [PAINT] })
  t.match(last, { type: 'RUN_FINISHED', runId: 'one', outcome: undefined }, 'no outcome is success to this client')
  t.strictSame(page.pendingInterrupts, [])
  t.match(page.transcript.at(-1), { role: 'assistant', toolCalls: [{ id: 'u1-1', function: { name: 'paint', arguments: '{"c":"red"}' } }] })
  page.addMessage({ id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'painted' } as never)
  t.match(await page.send({ runId: 'two', tools: [PAINT] }), { type: 'RUN_FINISHED', runId: 'two' })
  t.strictSame(page.transcript.slice(2), [{ id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'painted' }, { id: 'reply-t1', role: 'assistant', content: 'Tools: paint' }])
})

t.test('stops the agent by leaving the server', async (t) => {
  const agent = steered()
  const runtime = await serveRuntime(t, await serveApp(t, { agent }))
  const page = runtime.page('stop', [user('Hi')])
  const heard = page.seen('TEXT_MESSAGE_CONTENT')
  const running = page.send({ runId: 'one' })
  const run = await agent.next()
  run.say('Half')
  await heard
  t.match(await page.stop(), { stopped: true, interrupt: { code: 'STOPPED' } })
  await running
  t.match(page.events.at(-1), { type: 'RUN_ERROR', code: 'abort' })
  t.match(page.transcript, [user('Hi'), { content: 'Half' }])
  await run.over
  t.equal(run.context.signal.aborted, true)
  t.match(await page.stop(), { stopped: false })

  const again = page.send({ runId: 'two' });
  (await agent.next()).end()
  t.match(await again, { type: 'RUN_FINISHED', runId: 'two' })
})

t.test('loses its stop on a server that goes on alone, which then is busy', async (t) => {
  const agent = steered()
  const runtime = await serveRuntime(t, await serveApp(t, { agent, onDisconnect: 'continue' }))
  const page = runtime.page('stop-lost', [user('Hi')])
  const heard = page.seen('TEXT_MESSAGE_CONTENT')
  const running = page.send({ runId: 'one' })
  const run = await agent.next()
  run.say('Half')
  await heard
  t.match(await page.stop(), { stopped: true })
  t.match(await running, { type: 'RUN_ERROR', code: 'abort' })
  t.match(await page.send({ runId: 'two' }), { type: 'RUN_ERROR', message: 'Thread "stop-lost" is busy with run "one".' })
  t.equal(run.context.signal.aborted, false)
  run.end()
  await run.over
})

t.test('stops at the server where the server would go on alone', async (t) => {
  const agent = steered()
  const runtime = await serveRuntime(t, await serveApp(t, { agent, onDisconnect: 'continue' }), true)
  const page = runtime.page('stop-at', [user('Hi')])
  const heard = page.seen('TEXT_MESSAGE_CONTENT')
  const running = page.send({ runId: 'one' })
  const run = await agent.next()
  run.say('Half')
  await heard
  t.match(await page.stop(), { stopped: true })
  t.match(await running, { type: 'RUN_ERROR', code: 'CANCELLED' })
  await run.over
  t.equal(run.context.signal.aborted, true)
})
