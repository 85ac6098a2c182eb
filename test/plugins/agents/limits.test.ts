import t from 'tap'
import { memoryStore } from '../../../lib/stores/index.ts'
import { eventsOf, request, serveApp, type TestServer } from '../../helpers/ag-ui-app.ts'
import { type SseClient } from '../../helpers/sse-client.ts'
import { scripted, steered } from '../../helpers/steered-agent.ts'
import { serveTasks } from '../../helpers/task-app.ts'

const getPrincipal = ({ headers }: { readonly headers: Record<string, unknown> }): { id: string } => ({ id: String(headers['authorization']) })
const as = (authorization: string) => ({ headers: { authorization } })

/** A refusal as AG-UI tells it. */
async function refusal (client: SseClient): Promise<readonly [number, unknown, boolean]> {
  const { error } = await client.json() as { readonly error: { readonly code: string } }
  return [client.status, error.code, /^[1-9]\d*$/.test(String(client.headers['retry-after']))]
}

/** Resolves when the server has seen that its clients are gone. */
async function untilIdle (server: TestServer): Promise<void> {
  const count = async (): Promise<number> => await new Promise((resolve, reject) => {
    server.app.server.getConnections((error, connections) => { if (error === null) resolve(connections); else reject(error) })
  })
  while (await count() > 0) await new Promise((resolve) => { setImmediate(resolve) })
}

t.test('a run beyond the limit is refused with 429 and Retry-After before its agent is asked, and each owner has its own', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal, host: { limits: { maxRuns: 1 } } })
  const first = await server.run({}, as('ann'))
  const run = await agent.next()
  t.strictSame(await refusal(await server.run({ threadId: 'b' }, as('ann'))), [429, 'TOO_MANY_RUNS', true])
  const other = await server.run({ threadId: 'b' }, as('bob'))
  const others = await agent.next()
  others.end()
  await eventsOf(other)
  // The same request again finds its run, and is no further one.
  const again = await server.run({}, as('ann'))
  run.end()
  t.equal((await eventsOf(first)).at(-1)?.type, 'RUN_FINISHED')
  await eventsOf(again)
  const next = await server.run({ threadId: 'b' }, as('ann'));
  (await agent.next()).end()
  await eventsOf(next)
  t.equal(agent.runs.length, 3)
})

t.test('streams of one owner are limited on every route that opens one; refused and broken ones do not count', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal, onDisconnect: 'continue', host: { limits: { maxStreams: 2 } } })
  const client = await server.run({}, as('ann'))
  const run = await agent.next()
  const reader = await server.rejoin({ threadId: 'thread' }, undefined, as('ann'))
  for (let i = 0; i < 3; i++) {
    t.strictSame(await refusal(await server.rejoin({ threadId: 'thread' }, undefined, as('ann'))), [429, 'TOO_MANY_STREAMS', true])
    t.strictSame(await refusal(await server.run({ threadId: `other-${i}` }, as('ann'))), [429, 'TOO_MANY_STREAMS', true])
  }
  t.equal(agent.runs.length, 1, 'nothing was started')
  const others = await server.rejoin({ threadId: 'thread' }, undefined, as('bob'))
  await others.text()
  t.equal((await server.stop('unknown', undefined, { authorization: 'ann' })).status, 200, 'what is no stream is not limited')

  reader.destroy()
  client.destroy()
  await untilIdle(server)
  const back = [await server.rejoin({ threadId: 'thread' }, undefined, as('ann')), await server.rejoin({ threadId: 'thread' }, undefined, as('ann'))]
  t.strictSame(await refusal(await server.rejoin({ threadId: 'thread' }, undefined, as('ann'))), [429, 'TOO_MANY_STREAMS', true])
  run.end()
  for (const stream of back) await stream.text()
  // Answers that became no stream have given their place back: many bad requests, then two good ones.
  for (let i = 0; i < 5; i++) t.equal((await server.app.inject({ method: 'POST', url: '/agui/run/nobody', headers: { authorization: 'ann' }, payload: request() })).statusCode, 404)
  await untilIdle(server)
  for (const stream of [await server.rejoin({ threadId: 'thread' }, undefined, as('ann')), await server.rejoin({ threadId: 'thread' }, undefined, as('ann'))]) {
    t.equal(stream.status, 200)
    await stream.text()
  }
})

t.test('what an owner has stored is limited', async (t) => {
  const agent = scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(2_000) }])
  const store = memoryStore()
  const server = await serveApp(t, { agent, getPrincipal, store, host: { limits: { maxStoredBytes: 4_000 } } })
  await eventsOf(await server.run({}, as('ann')))
  await eventsOf(await server.run({ threadId: 'b' }, as('bob')))
  t.strictSame(await refusal(await server.run({ threadId: 'b' }, as('ann'))).then((answer) => answer.slice(0, 2)), [429, 'STORAGE_LIMIT'])
  t.equal(agent.calls.length, 2)
})

t.test('tasks are refused in their own words, when submitted, resumed or followed', async (t) => {
  const agent = steered({ capabilities: { resume: true } })
  const app = await serveTasks(t, { agent, getPrincipal, host: { limits: { maxRuns: 1, maxStreams: 1 }, metrics: { path: '/metrics' } } })
  const ann = { authorization: 'ann' }
  await app.submit('asking', {}, ann)
  const asking = await agent.next()
  asking.push({ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c1', name: 'f', input: {} }] })
  asking.end()
  t.match((await app.ask('GET', '/tasks/asking/wait', undefined, ann)).body, { status: 'awaiting_confirm' })
  t.match(await app.submit('running', {}, ann), { status: 200 })
  const run = await agent.next()
  const refused = { status: 429, headers: { 'retry-after': /^[1-9]/ }, body: { code: 'overloaded', error: /limit/ } }
  t.match(await app.submit('more', {}, ann), refused)
  t.match(await app.ask('POST', '/tasks/asking/resume', { decisions: [{ tool_call_id: 'c1', approved: true }] }, ann), refused)
  t.match((await app.ask('GET', '/tasks/asking', undefined, ann)).body, { status: 'awaiting_confirm' })
  t.match(await app.submit('more', {}, { authorization: 'bob' }), { status: 200 });
  (await agent.next()).end()

  const stream = await app.events('running', '', ann)
  const second = await app.events('running', '', ann)
  t.strictSame([second.status, (await second.json() as { code: string }).code], [429, 'too_many_streams'])
  t.match((await app.app.inject('/metrics')).body, /streams_open\{protocol="agent-protocol"\} 1/)
  run.end()
  await stream.text()
  t.match(await app.ask('POST', '/tasks/asking/resume', { decisions: [{ tool_call_id: 'c1', approved: true }] }, ann), { status: 200 });
  (await agent.next()).end()
  t.match((await app.ask('GET', '/tasks/asking/wait', undefined, ann)).body, { status: 'success' })
})
