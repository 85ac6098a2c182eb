import t from 'tap'
import { pause } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { connect } from '../../../helpers/sse-client.ts'
import { eventsUntil, serveTasks, taskEvents, type TaskServer, typesOf } from '../../../helpers/task-app.ts'

t.test('a task streams its events, ends with one terminal, and closes', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1', { context: { detail: 'full' } })
  const stream = await app.events('t1')
  t.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(stream.headers['cache-control'], 'no-cache, no-transform')
  t.equal(stream.headers['x-accel-buffering'], 'no')
  t.match(await stream.next(), { comments: ['ok'], retry: 2_000, data: undefined }, 'something comes at once')
  const execution = await agent.called()
  await execution.text('a\u2028b', 'c')
  await execution.say({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'ls' }, { type: 'TOOL_RESULT_END', toolCallId: 'c1', state: 'success' })
  execution.finish()
  const frames = await stream.rest()
  t.ok(frames.every(({ raw }) => !raw.includes('\r') && /^id: \d+\nevent: [A-Z_]+\ndata: [^\n]*\n\n$/.test(raw)), 'each frame is three lines')
  t.strictSame(frames.map(({ id, event }) => [id, event]), frames.map(({ data = '' }, index) => [String(index + 1), (JSON.parse(data) as { type: string }).type]), 'id and event say what the body says')
  const events = taskEvents(frames)
  t.strictSame(typesOf(events), ['RUN_STARTED', 'TEXT_DELTA', 'TEXT_DELTA', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT', 'RUN_FINISHED', 'STATUS'])
  t.strictSame(events.map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8])
  t.match(events[1], { taskId: 't1', agentId: 'default', text: 'a\u2028b', eventType: 'TEXT_BLOCK_DELTA', prevSeq: undefined })
  t.equal((JSON.parse(events[1]?.payload ?? '{}') as { delta: string }).delta, 'a\u2028b')
  t.match(events.at(-1), { status: 'success', result: 'a\u2028bc', taskId: 't1' })
  t.equal(await stream.closed, 'ended')
})

t.test('a detail decides what is published, and the sequence stays dense', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  const play = async (taskId: string, context: unknown): Promise<string[]> => {
    await app.submit(taskId, { context })
    const execution = await agent.called()
    await execution.say({ type: 'THINKING_BLOCK_DELTA', delta: 'hm' }, { type: 'TEXT_BLOCK_DELTA', delta: 'a' }, { type: 'CUSTOM', name: 'x', value: {} })
    execution.finish()
    await app.settled(taskId)
    const events = taskEvents(await (await app.events(taskId)).rest())
    t.strictSame(events.map(({ seq }) => seq), events.map((_, index) => index + 1))
    return typesOf(events)
  }
  const lifecycle = ['RUN_STARTED', 'RUN_FINISHED', 'STATUS']
  t.strictSame(await play('t1', {}), lifecycle)
  t.strictSame(await play('t2', { detail: 'nonsense' }), lifecycle, 'an unknown level is the lowest')
  t.strictSame(await play('t3', { detail: 'full', stream: false }), lifecycle, 'who does not stream gets no more than the lifecycle (D22)')
  t.strictSame(await play('t4', { detail: ' FULL ' }), ['RUN_STARTED', 'THINKING_DELTA', 'TEXT_DELTA', 'RUN_FINISHED', 'STATUS'])
  t.strictSame(await play('t5', { detail: 'verbose' }), [
    'RUN_STARTED', 'AGENT_EVENT', 'THINKING_DELTA', 'AGENT_EVENT', 'TEXT_DELTA', 'AGENT_EVENT', 'AGENT_EVENT', 'AGENT_EVENT', 'AGENT_EVENT', 'RUN_FINISHED', 'STATUS'
  ])
})

t.test('a reader can narrow the detail, not widen it, and leave payloads out', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text('a', 'b')
  execution.finish()
  await app.settled('t1')
  const read = async (query: string): Promise<(string | number | boolean | undefined)[][]> =>
    taskEvents(await (await app.events('t1', query)).rest()).map(({ type, seq, prevSeq, payload }) => [type, seq, prevSeq, payload !== undefined])
  t.strictSame(await read('detail=status'), [['RUN_STARTED', 1, 0, true], ['RUN_FINISHED', 4, 1, true], ['STATUS', 5, 4, false]])
  const whole = [['RUN_STARTED', 1, undefined, true], ['TEXT_DELTA', 2, undefined, true], ['TEXT_DELTA', 3, undefined, true], ['RUN_FINISHED', 4, undefined, true], ['STATUS', 5, undefined, false]]
  t.strictSame(await read('detail=verbose'), whole)
  t.strictSame(await read('payload=0'), whole.map(([type, seq, prev]) => [type, seq, prev, false]))
})

t.test('a submission without payloads has none in its stream', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1', { context: { detail: 'full', payload: false } })
  const execution = await agent.called()
  await execution.text('a')
  execution.finish()
  const events = taskEvents(await (await app.events('t1')).rest())
  t.strictSame(events.map(({ eventType, payload }) => [eventType, payload]), [['AGENT_START', undefined], ['TEXT_BLOCK_DELTA', undefined], ['AGENT_END', undefined], [undefined, undefined]])
})

t.test('reading goes on from a sequence, by query or header, and the query wins unless told otherwise', async (t) => {
  const app = await finished(t, {})
  t.strictSame(await seqs(app, ''), [1, 2, 3, 4, 5])
  t.strictSame(await seqs(app, 'from_seq=3'), [4, 5])
  t.strictSame(await seqs(app, '', '3'), [4, 5])
  t.strictSame(await seqs(app, 'from_seq=0', '3'), [1, 2, 3, 4, 5], 'an explicit 0 means from the start')
  t.strictSame(await seqs(app, 'from_seq=4', '2'), [5])
  t.strictSame(await seqs(app, '', ''), [1, 2, 3, 4, 5])
  const browser = await finished(t, { resumePrecedence: 'max' })
  t.strictSame(await seqs(browser, 'from_seq=1', '3'), [4, 5])
  t.strictSame(await seqs(browser, 'from_seq=3', '1'), [4, 5])
  t.strictSame(await seqs(browser, 'from_seq=3', 'odd'), [4, 5])
})

t.test('a from_seq that is no sequence is refused before a stream opens', async (t) => {
  const app = await finished(t, {})
  for (const value of ['-1', 'abc', '1.5', '', '1e3', ' 1', '1'.repeat(16)]) {
    t.match(await app.ask('GET', `/tasks/t1/events?from_seq=${encodeURIComponent(value)}`), { status: 400, body: { code: 'invalid_from_seq' } }, value)
  }
  t.match(await app.ask('GET', '/tasks/t1/events?from_seq=1&from_seq=2'), { status: 400, body: { code: 'invalid_query' } })
})

t.test('what cannot be replayed is told (C26, D8)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, replay: { maxEvents: 16 } })
  await app.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text(...Array.from({ length: 37 }, () => 'x')) // with start, end and status: 40
  execution.finish()
  await app.settled('t1')
  const { body } = await app.ask('GET', '/tasks/t1')
  const oldest = Number(body.oldest_seq)
  const last = Number(body.last_seq)
  t.equal(last, 40)
  t.ok(oldest > 16)
  const kept = Array.from({ length: last - oldest + 1 }, (_, index) => oldest + index)
  const gap = { type: 'STREAM_GAP', taskId: 't1', oldestSeq: oldest, lastSeq: 40 }
  const read = async (query: string, header?: string): Promise<unknown[]> => {
    const frames = await (await app.events('t1', query, header === undefined ? {} : { 'last-event-id': header })).rest()
    const [first, ...rest] = frames.filter(({ data }) => data !== undefined).map(({ id, event, data = '' }) => event === 'STREAM_GAP' ? { id, ...withoutEpoch(data) } : Number(id))
    return [first, rest]
  }
  t.strictSame(await read(`from_seq=${oldest - 1}`), [oldest, kept.slice(1)], 'the edge has no gap')
  t.strictSame(await read(`from_seq=${oldest - 2}`), [{ id: undefined, ...gap, fromSeq: oldest - 2, missed: 1, reason: 'evicted' }, kept])
  t.strictSame(await read('from_seq=0'), [{ id: undefined, ...gap, fromSeq: 0, missed: oldest - 1, reason: 'evicted' }, kept])
  t.strictSame(await read(''), [{ id: undefined, ...gap, fromSeq: 0, missed: oldest - 1, reason: 'evicted' }, kept])
  t.strictSame(await read('from_seq=41'), [{ id: undefined, ...gap, fromSeq: 41, reason: 'ahead' }, kept])
  t.strictSame(await read('', 'garbage'), [{ id: undefined, ...gap, reason: 'invalid' }, kept])
  t.match(await app.ask('GET', '/tasks/t1/events?from_seq=1&gap=fail'), { status: 410, body: { code: 'replay_gap', oldest_seq: oldest, last_seq: 40 } })
  t.match(await app.ask('GET', '/tasks/t1/events?from_seq=41&gap=fail'), { status: 410, body: { code: 'sequence_ahead' } })
  t.equal((await app.events('t1', 'from_seq=40')).status, 204, 'who has it all is sent away (D3)')
})

t.test('a stream that is opened before its submission waits for it (5.3)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  const opening = app.events('t1')
  const other = app.events('t1')
  // Both are listening once the server has heard of them.
  while (app.app.server.listening && await connections(app) < 2) await new Promise((resolve) => { setImmediate(resolve) })
  await app.submit('t1')
  const [stream, second] = [await opening, await other]
  t.equal(stream.status, 200)
  ;(await agent.called()).finish()
  t.strictSame(typesOf(taskEvents(await stream.rest())), ['RUN_STARTED', 'RUN_FINISHED', 'STATUS'])
  t.strictSame(typesOf(taskEvents(await second.rest())), ['RUN_STARTED', 'RUN_FINISHED', 'STATUS'])
})

t.test('a stream of a task that nobody submits ends with 404 after the grace', async (t) => {
  const app = await serveTasks(t, { agent: new ScriptedAgent(), subscribeGraceMs: 5 })
  t.match(await app.ask('GET', '/tasks/t1/events'), { status: 404, body: { code: 'task_not_found', error: 'task not found' } })
  const patient = await serveTasks(t, { agent: new ScriptedAgent() })
  t.match(await patient.ask('GET', '/tasks/a%20b/events'), { status: 404 }, 'an id that cannot be has no grace')
  t.match(await patient.ask('HEAD', '/tasks/t1/events'), { status: 404 }, 'nor has a HEAD')
})

t.test('a HEAD gets the headers, and nobody reads (C17)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1')
  const head = await connect('HEAD', '/tasks/t1/events', { port: app.port })
  t.equal(head.status, 200)
  t.match(head.headers['content-type'], /text\/event-stream/)
  t.equal(await head.text(), '')
  const run = await app.host.engine.find({}, 'agent-protocol', 't1')
  t.equal(run?.topic.readers, 0)
})

t.test('leaving a stream changes nothing for its task', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent })
  await app.submit('t1', { context: { detail: 'full' } })
  const stream = await app.events('t1')
  const execution = await agent.called()
  await execution.text('a')
  await eventsUntil(stream, ({ type }) => type === 'TEXT_DELTA')
  await stream.destroy()
  await execution.text('b')
  t.equal(execution.context.signal.aborted, false)
  execution.finish()
  t.match((await app.settled('t1')).body, { status: 'success', result: 'ab' })
})

t.test('a pause leaves the stream open, and a resume goes on in it', async (t) => {
  const agent = new ScriptedAgent({ resume: true })
  const app = await serveTasks(t, { agent })
  await app.submit('t1')
  const stream = await app.events('t1')
  const run = await app.host.engine.find({}, 'agent-protocol', 't1')
  t.ok(run)
  if (run !== undefined) await pause(agent, run)
  const paused = await eventsUntil(stream, ({ type }) => type === 'REQUIRE_CONFIRM')
  t.strictSame(typesOf(paused), ['RUN_STARTED', 'TOOL_CALL_START', 'TOOL_CALL_END', 'RUN_FINISHED', 'REQUIRE_CONFIRM'], 'one a pause (D7)')
  t.match(paused.at(-1), {
    status: 'awaiting_confirm', eventType: 'REQUIRE_USER_CONFIRM', payload: /REQUIRE_USER_CONFIRM/, pendingConfirms: [{ toolCallId: 'c1', toolName: 'delete', toolInputJson: '{"path":"/tmp/a"}' }]
  })
  t.match(await app.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] }), { status: 200, body: { status: 'running' } }, 'from within the handler of that event (D6)')
  const second = await agent.called()
  await second.say({ type: 'TOOL_RESULT_START', toolCallId: 'c1' }, { type: 'TOOL_RESULT_END', toolCallId: 'c1', state: 'success' })
  second.finish()
  const rest = taskEvents(await stream.rest())
  t.strictSame(rest.map(({ type, seq }) => [type, seq]), [['RUN_STARTED', 6], ['TOOL_RESULT', 7], ['RUN_FINISHED', 8], ['STATUS', 9]])
})

t.test('a server that does not stream says so', async (t) => {
  const app = await serveTasks(t, { agent: new ScriptedAgent(), streamingEnabled: false })
  await app.submit('t1')
  t.match(await app.ask('GET', '/tasks/t1/events'), { status: 404, body: { code: 'streaming_disabled' } })
})

t.test('too many readers are refused, of one task and of all', async (t) => {
  const app = await serveTasks(t, { agent: new ScriptedAgent(), maxSubscribersPerTask: 2, maxStreams: 3 })
  await app.submit('t1')
  await app.submit('t2')
  const first = await app.events('t1')
  const second = await app.events('t1')
  t.match(await app.ask('GET', '/tasks/t1/events'), { status: 429, body: { code: 'too_many_streams' }, headers: { 'retry-after': /^[1-5]$/ } })
  const third = await app.events('t2')
  t.match(await app.ask('GET', '/tasks/t2/events'), { status: 429, body: { code: 'too_many_streams' } })
  await second.destroy()
  await third.destroy()
  // The server hears of both by and by; the third of one task is the sign.
  let again = await app.events('t1')
  while (again.status === 429) again = await app.events('t1')
  t.equal(again.status, 200)
  await first.destroy()
  await again.destroy()
})

t.test('who takes no event stream gets none', async (t) => {
  const app = await finished(t, {})
  t.match(await app.ask('GET', '/tasks/t1/events', undefined, { accept: 'application/json' }), { status: 406, body: { code: 'not_acceptable' } })
})

async function finished (t: Parameters<typeof serveTasks>[0], options: Omit<Parameters<typeof serveTasks>[1], 'agent'>): Promise<TaskServer> {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, ...options })
  await app.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text('a', 'b')
  execution.finish()
  await app.settled('t1')
  return app
}

async function seqs (app: TaskServer, query: string, lastEventId?: string): Promise<(number | undefined)[]> {
  const stream = await app.events('t1', query, lastEventId === undefined ? {} : { 'last-event-id': lastEventId })
  return taskEvents(await stream.rest()).map(({ seq }) => seq)
}

function connections ({ app }: TaskServer): Promise<number> {
  return new Promise((resolve, reject) => { app.server.getConnections((error, count) => { if (error === null) resolve(count); else reject(error) }) })
}

function withoutEpoch (data: string): Record<string, unknown> {
  const { streamEpoch, ...rest } = JSON.parse(data) as Record<string, unknown>
  return typeof streamEpoch === 'string' ? rest : { ...rest, streamEpoch }
}
