import t from 'tap'
import { checkFrames, typesOf } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, readUntil, request, serveApp } from '../../../helpers/ag-ui-app.ts'
import { runScript } from '../../../helpers/child.ts'
import { steered } from '../../../helpers/steered-agent.ts'

t.test('a second run on a busy thread is refused in its own stream, naming the running one', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const first = await server.run()
  const run = await agent.next()
  for (const runId of ['second', 'run']) {
    const refused = await server.run({ runId, messages: [] })
    t.equal(refused.status, 200)
    const events = await eventsOf(refused, { ids: false })
    t.strictSame(typesOf(events), ['RUN_STARTED', 'RUN_ERROR'])
    t.match(events, [{ threadId: 'thread', runId, input: { messages: [] } }, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: 'Thread "thread" is busy with run "run".', timestamp: Number }])
  }
  run.end()
  t.equal((await eventsOf(first)).at(-1)?.type, 'RUN_FINISHED')
  t.equal(agent.runs.length, 1)
  t.strictSame(await server.runIds(), ['run'])
})

t.test('or with 409, where the server is told so', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, conflictStatus: 409 })
  const first = await server.run()
  const run = await agent.next()
  for (const runId of ['second', 'run']) {
    const refused = await server.app.inject({ method: 'POST', url: '/agui/run', payload: request({ runId, messages: [] }) })
    t.match(refused, { statusCode: 409, headers: { 'content-type': 'application/json; charset=utf-8' } })
    t.strictSame(refused.json(), { error: { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: 'The thread is busy with run "run".' } })
  }
  run.end()
  t.equal((await eventsOf(first)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('threads run beside each other, also on one agent', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const clients = await Promise.all(['a', 'b', 'c'].map((threadId) => server.run({ threadId })))
  const runs = [await agent.next(), await agent.next(), await agent.next()]
  t.strictSame(runs.map(({ context }) => context.sessionId).sort(), ['a', 'b', 'c'])
  for (const run of runs) {
    run.say(run.context.sessionId)
    run.end()
  }
  for (const client of clients) t.equal((await eventsOf(client)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('with queue runs of a thread come one after the other, in order', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, concurrency: 'queue' })
  const clients = []
  for (const runId of ['one', 'two', 'three']) clients.push(await server.run({ runId }))
  for (const runId of ['one', 'two', 'three']) {
    const run = await agent.next()
    t.equal(run.context.runId, runId)
    t.equal(agent.runs.length, ['one', 'two', 'three'].indexOf(runId) + 1, 'the others have not begun')
    run.end()
  }
  for (const client of clients) t.equal((await eventsOf(client)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a queued run whose client leaves gives up its place', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, concurrency: 'queue' })
  const first = await server.run({ runId: 'one' })
  const running = await agent.next()
  const second = await server.run({ runId: 'two' })
  const third = await server.run({ runId: 'three' })
  const two = await server.host.engine.find({}, 'ag-ui', 'two', 'thread')
  await second.destroy()
  t.match(await two?.ended, { state: 'cancelled', end: { code: 'disconnect' } })
  running.end()
  const run = await agent.next()
  t.equal(run.context.runId, 'three')
  run.end()
  t.equal((await eventsOf(third)).at(-1)?.type, 'RUN_FINISHED')
  t.equal((await eventsOf(first)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('with supersede the newer run takes the thread over, and the older one says so', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, concurrency: 'supersede' })
  const first = await server.run({ runId: 'one' })
  const older = await agent.next()
  older.say('half')
  const seen = await readUntil(first, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  const second = await server.run({ runId: 'two' })
  await older.over
  const events = checkFrames([...seen, ...await first.rest()])
  t.match(events.at(-1), { type: 'RUN_ERROR', code: 'INTERRUPTED_ERROR' })
  const newer = await agent.next()
  t.equal(newer.context.runId, 'two')
  newer.end()
  t.equal((await eventsOf(second)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a thread is free again after an error, a disconnect, a timeout, a stop and a setup that failed', async (t) => {
  const agent = steered()
  let fails = true
  const server = await serveApp(t, {
    agents: {
      agent,
      broken: () => { throw new Error('no key') },
      missing: () => undefined,
      nothing: () => null
    },
    defaultAgent: 'agent',
    runTimeoutMs: 100,
    runtimeContextResolver: () => ({ prepare: () => { if (fails) throw new Error('no context') } })
  })
  for (const path of ['/agui/run/broken', '/agui/run/missing', '/agui/run/nothing', '/agui/run']) {
    const events = await eventsOf(await server.run({ runId: path }, { path }))
    t.strictSame(typesOf(events), ['RUN_STARTED', 'RUN_ERROR'], path)
    t.match(events.at(-1), { code: /(missing|nothing)$/.test(path) ? 'AGENT_NOT_FOUND' : 'INTERNAL_ERROR' })
  }
  fails = false
  const failing = await server.run({ runId: 'error' });
  (await agent.next()).fail(new Error('x'))
  t.equal((await eventsOf(failing)).at(-1)?.type, 'RUN_ERROR')

  t.match((await eventsOf(await server.run({ runId: 'timeout' }))).at(-1), { code: 'TIMEOUT_ERROR' })
  await agent.next()

  const gone = await server.run({ runId: 'gone' })
  const left = await agent.next()
  const run = await server.host.engine.find({}, 'ag-ui', 'gone', 'thread')
  await gone.destroy()
  await left.over
  await run?.ended

  const stopped = await server.run({ runId: 'stopped' })
  await agent.next()
  await server.stop('thread')
  await stopped.text()

  const last = await server.run({ runId: 'last' });
  (await agent.next()).end()
  t.equal((await eventsOf(last)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a thousand runs, each started as soon as the last one has told its end, are all accepted', async (t) => {
  t.strictSame(await runScript(new URL('load/follow-ups.ts', import.meta.url)), { terminals: { RUN_FINISHED: 1_000 }, troubles: [] })
})
