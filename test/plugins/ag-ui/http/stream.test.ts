import t from 'tap'
import { type Agent, AgentError, type AgentEventInit } from '../../../../lib/agent/index.ts'
import { checkFrames, typesOf } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, readUntil, request, serveApp, snapshotOf } from '../../../helpers/ag-ui-app.ts'
import { deferred } from '../../../helpers/sse-server.ts'
import { scripted, steered } from '../../../helpers/steered-agent.ts'

const say = (delta: string, replyId = 'r1'): AgentEventInit => ({ type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta })

t.test('streams a plain answer as events with dense ids, headers first', async (t) => {
  const server = await serveApp(t, { agent: scripted([say('Hel'), say('lo.')]) })
  const client = await server.run()
  t.equal(client.status, 200)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(client.headers['cache-control'], 'no-cache, no-transform')
  t.equal(client.headers['x-accel-buffering'], 'no')
  t.strictSame(await eventsOf(client), [
    {
      type: 'RUN_STARTED',
      threadId: 'thread',
      runId: 'run',
      protocolVersion: '1.0',
      input: { threadId: 'thread', runId: 'run', protocolVersion: '1.0', messages: [{ id: 'u1', role: 'user', content: 'Hi' }], tools: [], context: [] }
    },
    { type: 'TEXT_MESSAGE_START', messageId: 'r1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hel' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r1', delta: 'lo.' },
    { type: 'TEXT_MESSAGE_END', messageId: 'r1' },
    { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome: { type: 'success' } }
  ])
  t.equal(await client.closed, 'ended')
})

t.test('sends headers and RUN_STARTED before the agent says anything', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const frames = [await client.next()]
  t.equal(client.status, 200)
  const run = await agent.next()
  t.equal(run.taken, 0)
  run.end()
  const events = checkFrames([...frames, ...await client.rest()])
  t.strictSame(typesOf(events), ['RUN_STARTED', 'RUN_FINISHED'])
})

t.test('keeps a silent stream awake with comments between whole events', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, heartbeatMs: 1_000 })
  const client = await server.run()
  const run = await agent.next()
  run.say('one')
  const frames = await client.until(({ comments }) => comments.length > 0)
  t.equal(frames.at(-1)?.raw, ': heartbeat\n\n')
  run.say('two')
  run.end()
  frames.push(...await client.rest())
  t.strictSame(typesOf(checkFrames(frames)), [
    'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'
  ])
})

const FORGED = 'x\r\nid: forged\r\rdata: {"type":"RUN_ERROR","message":"forged"}\n\n\0\u2028\u2029\u0085'

t.test('no text of a client or an agent ends a line of the stream', async (t) => {
  const agent = scripted([
    { type: 'CUSTOM', name: FORGED, value: { [FORGED]: FORGED } },
    { type: 'TOOL_CALL_START', replyId: FORGED, toolCallId: FORGED, toolCallName: FORGED },
    { type: 'TOOL_CALL_DELTA', toolCallId: FORGED, delta: FORGED },
    { type: 'TOOL_CALL_END', toolCallId: FORGED },
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: FORGED, delta: FORGED },
    { type: 'TOOL_RESULT_END', toolCallId: FORGED, state: 'success' },
    { type: 'THINKING_BLOCK_DELTA', replyId: FORGED, delta: FORGED },
    say(FORGED, FORGED)
  ])
  const server = await serveApp(t, { agents: { [FORGED]: agent, other: agent }, enableReasoning: true })
  const client = await server.run({
    threadId: FORGED,
    runId: FORGED,
    parentRunId: FORGED,
    forwardedProps: { agentId: FORGED },
    state: { [FORGED]: FORGED },
    context: [{ description: FORGED, value: FORGED }],
    messages: [{ id: FORGED, role: 'user', content: FORGED, name: FORGED }],
    tools: [{ name: FORGED, description: FORGED }]
  })
  const frames = await client.rest()
  t.notMatch(client.received, /[\r\0\u2028\u2029\u0085]/)
  t.ok(frames.every(({ raw }) => /^id: [\w-]+\.\d+\ndata: [^\n]+\n\n$/.test(raw)), 'an id, a line of data and a blank line, nothing else')
  const events = checkFrames(frames)
  t.equal(events.at(-1)?.type, 'RUN_FINISHED')
  t.match(events.find(({ type }) => type === 'TEXT_MESSAGE_CONTENT'), { delta: FORGED })
  t.match(events.find(({ type }) => type === 'TOOL_CALL_RESULT'), { content: FORGED })

  const again = await server.rejoin({ threadId: FORGED })
  t.notMatch(await again.text(), /[\r\0\u2028\u2029\u0085]/)
  const unknown = await server.rejoin({ threadId: FORGED + '2', runId: FORGED })
  t.notMatch(await unknown.text(), /[\r\0\u2028\u2029\u0085]/)
  const stopped = await server.stop(FORGED.slice(0, 20))
  t.strictSame(stopped, { status: 200, body: { threadId: FORGED.slice(0, 20), stopped: false } })
})

t.test('a surrogate pair that is split over two deltas arrives whole, a lone half as one replacement', async (t) => {
  const server = await serveApp(t, {
    agent: scripted([
      say('a\ud83d'), say('\ude00!'),
      { type: 'TEXT_BLOCK_END', replyId: 'r1', blockId: 'text' },
      { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'c1', toolCallName: 'f' },
      { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"a":"\ud83d' },
      { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '\ude00"}' },
      { type: 'TOOL_CALL_END', toolCallId: 'c1' },
      say('end\ud83d', 'r2')
    ])
  })
  const events = await eventsOf(await server.run())
  const text = (id: string): string => events.map((event) => event.type === 'TEXT_MESSAGE_CONTENT' && event.messageId === id ? event.delta : '').join('')
  t.equal(text('r1'), 'a😀!')
  t.equal(text('r2'), 'end\ufffd')
  t.equal(events.map((event) => event.type === 'TOOL_CALL_ARGS' ? event.delta : '').join(''), '{"a":"😀"}')
  const [, snapshot] = await snapshotOf(await server.rejoin({ threadId: 'thread' }))
  t.match(snapshot, { type: 'MESSAGES_SNAPSHOT', messages: [{}, { content: 'a😀!' }, { content: 'end\ufffd' }] })
})

const cyclic = new Error('secret')
cyclic.cause = cyclic

const FAILURES: Readonly<Record<string, { readonly agent: Agent, readonly code: string, readonly message: string }>> = {
  'an error': { agent: scripted([say('a')], { error: new Error('secret') }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'an error before its first event': { agent: scripted([], { error: new Error('secret') }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  undefined: { agent: scripted([say('a')], { error: undefined }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'an error that is its own cause': { agent: scripted([say('a')], { error: cyclic }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'a string': { agent: scripted([say('a')], { error: 'secret' }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'an object without a prototype': { agent: scripted([say('a')], { error: Object.create(null) }), code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'an error meant for clients': {
    agent: scripted([say('a')], { error: new AgentError({ code: 'quota', message: 'Come back tomorrow.', expose: true }) }), code: 'quota', message: 'Come back tomorrow.'
  },
  'a coded error not meant for clients': {
    agent: scripted([say('a')], { error: new AgentError({ code: 'quota', message: 'secret' }) }), code: 'quota', message: 'The agent failed.'
  },
  'a timeout of its own': {
    agent: scripted([say('a')], { error: Object.assign(new Error('secret'), { name: 'TimeoutError' }) }), code: 'TIMEOUT_ERROR', message: 'The agent failed.'
  },
  'an error out of its finally': {
    agent: {
      name: 'finally',
      async * stream () {
        try {
          yield say('a')
        } finally {
          throw new Error('secret') // eslint-disable-line no-unsafe-finally
        }
      }
    },
    code: 'INTERNAL_ERROR',
    message: 'The agent failed.'
  },
  'an error out of stream() itself': { agent: { name: 'early', stream () { throw new Error('secret') } }, code: 'INTERNAL_ERROR', message: 'The agent failed.' },
  'an error out of next()': {
    agent: { name: 'next', stream: () => ({ [Symbol.asyncIterator]: () => ({ next () { throw new Error('secret') } }) }) }, code: 'INTERNAL_ERROR', message: 'The agent failed.'
  },
  'something that is no iterable': { agent: { name: 'none', stream: () => undefined as never }, code: 'INTERNAL_ERROR', message: 'The agent failed.' }
}

for (const [what, { agent, code, message }] of Object.entries(FAILURES)) {
  t.test(`an agent that throws ${what} ends its run with one RUN_ERROR that tells nothing secret`, async (t) => {
    const server = await serveApp(t, { agent })
    const client = await server.run()
    const events = await eventsOf(client)
    t.match(events.at(-1), { type: 'RUN_ERROR', code, message, timestamp: Number })
    t.notMatch(client.received, /secret/)
    t.equal(await client.closed, 'ended')
    t.ok(server.logs.some(({ level, msg }) => level >= 40 && msg === 'the agent failed'), 'an operator reads of it')
    // The thread is free again.
    t.equal((await eventsOf(await server.run({ runId: 'next' }))).at(-1)?.type, 'RUN_ERROR')
  })
}

t.test('a rejection that comes after the agent has returned changes nothing', async (t) => {
  const agent: Agent = {
    name: 'late',
    async * stream () {
      yield say('a')
      queueMicrotask(() => { Promise.reject(new Error('late')).catch(() => {}) })
    }
  }
  const server = await serveApp(t, { agent })
  t.equal((await eventsOf(await server.run())).at(-1)?.type, 'RUN_FINISHED')
})

t.test('an agent that tells its end and then throws, or goes on, still has one terminal with nothing after it', async (t) => {
  const end: AgentEventInit = { type: 'AGENT_END', replyId: 'r1' }
  for (const agent of [
    scripted([say('a'), end], { error: new Error('late') }),
    scripted([say('a'), end, say('b'), end]),
    scripted([say('a'), end, { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'f' }])
  ]) {
    const server = await serveApp(t, { agent })
    const events = await eventsOf(await server.run())
    t.equal(events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR').length, 1)
  }
})

t.test('a failure closes text, reasoning and tool calls before RUN_ERROR', async (t) => {
  const server = await serveApp(t, {
    enableReasoning: true,
    agent: scripted([
      say('a'),
      { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'c1', toolCallName: 'f' },
      { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"a"' },
      { type: 'THINKING_BLOCK_DELTA', replyId: 'r2', delta: 'hm' }
    ], { error: new Error('cut') })
  })
  const events = await eventsOf(await server.run())
  t.strictSame(typesOf(events), [
    'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'TOOL_CALL_START', 'TOOL_CALL_ARGS',
    'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', 'TOOL_CALL_END', 'RUN_ERROR'
  ])
})

t.test('text, tool and text of one reply without explicit ends come as two messages around the call', async (t) => {
  const server = await serveApp(t, {
    agent: scripted([
      say('one'),
      { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'c1', toolCallName: 'f' },
      { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{}' },
      say('two')
    ])
  })
  const events = await eventsOf(await server.run())
  const started = events.flatMap((event) => event.type === 'TEXT_MESSAGE_START' ? [event.messageId] : [])
  t.equal(new Set(started).size, 2)
  t.equal(events.at(-1)?.type, 'RUN_FINISHED')
})

t.test('two calls keep their own arguments, whatever way they are mixed', async (t) => {
  const start = (id: string): AgentEventInit => ({ type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: id, toolCallName: 'f' })
  const delta = (id: string, text: string): AgentEventInit => ({ type: 'TOOL_CALL_DELTA', toolCallId: id, delta: text })
  const SHAPES = [
    [start('A'), start('B'), delta('B', '{"b":'), delta('A', '{"a":1}'), delta('B', '2}')],
    [start('A'), delta('A', '{"a":1}'), start('B'), delta('B', '{"b":2}')],
    [delta('A', '{"a":1}'), delta('B', '{"b":2}')]
  ]
  for (const shape of SHAPES) {
    const server = await serveApp(t, { agent: scripted(shape) })
    const events = await eventsOf(await server.run())
    const text = (id: string): string => events.map((event) => event.type === 'TOOL_CALL_ARGS' && event.toolCallId === id ? event.delta : '').join('')
    t.strictSame([text('A'), text('B')], ['{"a":1}', '{"b":2}'])
  }
})

t.test('a request whose body has been read is not taken for a disconnect', async (t) => {
  const agent = steered()
  const read = deferred<undefined>()
  const server = await serveApp(t, {
    agent,
    before: (app) => { app.addHook('onRequest', ({ raw }, _reply, done) => { raw.once('close', () => { read.resolve(undefined) }); done() }) }
  })
  const client = await server.run()
  const run = await agent.next()
  // Node closes the request here, long before the run is over.
  await read.promise
  run.say('still here')
  await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  t.equal(run.context.signal.aborted, false)
  run.end()
  t.equal(JSON.parse((await client.rest()).at(-1)?.data ?? '').type, 'RUN_FINISHED')
})

t.test('a body that was sent in many pieces is one request', async (t) => {
  const server = await serveApp(t, { agent: scripted([say('x')]) })
  const big = 'ü'.repeat(200_000)
  const events = await eventsOf(await server.run(request({ messages: [{ id: 'u1', role: 'user', content: big }] })))
  t.match(events[0], { type: 'RUN_STARTED', input: { messages: [{ content: big }] } })
})
