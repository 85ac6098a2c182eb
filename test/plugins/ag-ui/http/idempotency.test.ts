import t from 'tap'
import { checkFrames, typesOf } from '../../../helpers/ag-ui-check.ts'
import { buildApp, eventsOf, readUntil, request, serveApp } from '../../../helpers/ag-ui-app.ts'
import { scripted, steered } from '../../../helpers/steered-agent.ts'

t.test('the same request again is the same run from its first event, while it runs and after', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const first = await server.run()
  const run = await agent.next()
  run.say('one ')
  const seen = await readUntil(first, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  const second = await server.run()
  run.say('two')
  run.end()
  const frames = [...seen, ...await first.rest()]
  t.strictSame(await second.rest(), frames)
  const third = await server.run()
  t.strictSame(await third.rest(), frames)
  t.equal(checkFrames(frames).at(-1)?.type, 'RUN_FINISHED')
  t.equal(agent.runs.length, 1)
  t.strictSame(await server.runIds(), ['run'])
})

t.test('two requests that arrive at once start one run', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const clients = await Promise.all([server.run(), server.run(), server.run()])
  const run = await agent.next()
  run.end()
  const all = await Promise.all(clients.map((client) => client.text()))
  t.equal(new Set(all).size, 1)
  t.equal(agent.runs.length, 1)
})

t.test('a duplicate whose run has lost its first frames is told from a snapshot', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, replay: { maxEvents: 20 } })
  const first = await server.run()
  const run = await agent.next()
  for (let index = 0; index < 300; index++) run.say(`${index} `)
  await readUntil(first, (event) => event.type === 'TEXT_MESSAGE_CONTENT' && event.delta === '299 ')
  const second = await server.run()
  run.say('end')
  run.end()
  await first.rest()
  const frames = await second.rest()
  const at = frames.findIndex(({ id }) => id !== undefined)
  const events = [...checkFrames(frames.slice(0, at), { ids: false, whole: false }), ...checkFrames(frames.slice(at), { whole: false })]
  t.strictSame(typesOf(events).slice(0, 3), ['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'TEXT_MESSAGE_START'])
  t.equal(events.at(-1)?.type, 'RUN_FINISHED')
  t.equal(agent.runs.length, 1)
})

t.test('a run id is used again for another body once its run is over, as CopilotKit does', async (t) => {
  const agent = scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' }])
  const server = await serveApp(t, { agent })
  for (const content of ['one', 'two', 'three']) {
    const events = await eventsOf(await server.run({ messages: [{ id: 'u1', role: 'user', content }] }))
    t.match(events, [{ type: 'RUN_STARTED', runId: 'run', input: { messages: [{ content }] } }])
    t.equal(events.at(-1)?.type, 'RUN_FINISHED')
  }
  t.equal(agent.calls.length, 3)
  t.strictSame(await server.runIds(), ['run', 'run', 'run'])
})

t.test('run ids belong to their thread', async (t) => {
  const agent = scripted([])
  const server = await serveApp(t, { agent })
  await eventsOf(await server.run({ threadId: 'one' }))
  await eventsOf(await server.run({ threadId: 'two' }))
  t.equal(agent.calls.length, 2)
})

t.test('the same body for another agent is another run', async (t) => {
  const one = scripted([])
  const two = scripted([])
  const server = await serveApp(t, { agents: { one, two } })
  await eventsOf(await server.run({}, { path: '/agui/run/one' }))
  await eventsOf(await server.run({}, { path: '/agui/run/two' }))
  t.strictSame([one.calls.length, two.calls.length], [1, 1])
})

t.test('an Idempotency-Key names one request: again it is the same run, with another body 409', async (t) => {
  const agent = scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' }])
  const server = await serveApp(t, { agent })
  const headers = { 'idempotency-key': 'k1' }
  const first = await (await server.run({}, { headers })).text()
  t.equal(await (await server.run({}, { headers })).text(), first)
  t.equal(agent.calls.length, 1)
  for (const other of [{ runId: 'other' }, { threadId: 'other' }, { messages: [] }, { state: 1 }]) {
    const refused = await server.app.inject({ method: 'POST', url: '/agui/run', headers, payload: request(other) })
    t.match(refused, { statusCode: 409, headers: { 'content-type': 'application/json; charset=utf-8' } })
    t.match(refused.json(), { error: { code: 'IDEMPOTENCY_CONFLICT' } })
  }
  t.equal(agent.calls.length, 1)
  await (await server.run({ runId: 'other' }, { headers: { 'idempotency-key': 'k2' } })).text()
  t.equal(agent.calls.length, 2)
})

t.test('a blank Idempotency-Key is none', async (t) => {
  const agent = scripted([])
  const server = await buildApp(t, { agent })
  const headers = { 'idempotency-key': ' ' }
  for (const runId of ['a', 'b']) t.equal((await server.app.inject({ method: 'POST', url: '/agui/run', headers, payload: request({ runId }) })).statusCode, 200)
})
