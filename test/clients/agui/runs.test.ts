import t, { type Test } from 'tap'
import { type AgentEventInit, AgentError } from '../../../lib/agent/index.ts'
import { checkOrder } from '../../helpers/ag-ui-check.ts'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { scripted, steered } from '../../helpers/steered-agent.ts'
import { liveClients, type LiveClient, type Session } from './live.ts'

const USER = { id: 'u1', role: 'user', content: 'Hi' }
const say = (delta: string, replyId = 'r1'): AgentEventInit => ({ type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta })
const think = (delta: string, replyId = 'r1'): AgentEventInit => ({ type: 'THINKING_BLOCK_DELTA', replyId, blockId: 'thought', delta })
const call = (id: string, name: string, ...deltas: readonly string[]): AgentEventInit[] => [
  { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: id, toolCallName: name },
  ...deltas.map((delta): AgentEventInit => ({ type: 'TOOL_CALL_DELTA', toolCallId: id, delta })),
  { type: 'TOOL_CALL_END', toolCallId: id }
]
const result = (id: string, text: string, state: 'success' | 'error' = 'success'): AgentEventInit[] => [
  { type: 'TOOL_RESULT_START', replyId: 'act', toolCallId: id },
  ...text === '' ? [] : [{ type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: id, delta: text } as const],
  { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: id, state }
]

for (const client of liveClients) {
  t.test(`client ${client.version}`, async (t) => {
    await scenarios(t, client)
  })
}

/** What must hold after every run: a legal stream with this last event, and a client that had nothing to complain about. */
function check (t: Test, session: Session, terminal: object): void {
  checkOrder(session.wire)
  t.match(session.wire.at(-1), terminal)
  t.strictSame(session.warnings, [])
}

async function scenarios (t: Test, { profile, open }: LiveClient): Promise<void> {
  const isV1 = profile === 'v1'
  const success = { type: 'RUN_FINISHED', outcome: isV1 ? { type: 'success' } : undefined }
  const cancelled = isV1 ? { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } } : { type: 'RUN_ERROR', code: 'CANCELLED' }

  await t.test('reads plain text, and the next turn after it', async (t) => {
    const server = await serveApp(t, { agents: { one: scripted([say('Hello, '), say('you.')]), two: scripted([say('Again.', 'r2')]) }, defaultAgent: 'one' })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run({ runId: 'one' })
    check(t, session, { ...success, runId: 'one' })
    t.strictSame(session.messages, [USER, { id: 'r1', role: 'assistant', content: 'Hello, you.' }])
    session.agent.addMessage({ id: 'u2', role: 'user', content: 'More' })
    await session.run({ runId: 'two', forwardedProps: { agentId: 'two' } })
    check(t, session, { ...success, runId: 'two' })
    t.strictSame(session.messages.slice(2), [{ id: 'u2', role: 'user', content: 'More' }, { id: 'r2', role: 'assistant', content: 'Again.' }])
    t.strictSame(session.errors, [])
  })

  await t.test('reads reasoning as messages of their own, beside the text', async (t) => {
    const server = await serveApp(t, { agent: scripted([think('Let me '), think('see.'), say('It is so.'), think('Sure?', 'r2'), say('Yes.', 'r2')]), enableReasoning: true })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run()
    check(t, session, success)
    t.strictSame(session.messages.map((message) => { const { role, content } = message as { role: string, content: string }; return [role, content] }), [
      ['user', 'Hi'], ['reasoning', 'Let me see.'], ['assistant', 'It is so.'], ['reasoning', 'Sure?'], ['assistant', 'Yes.']
    ])
  })

  await t.test('does not hear of reasoning where it is off', async (t) => {
    const server = await serveApp(t, { agent: scripted([think('secret'), say('x')]) })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run()
    check(t, session, success)
    t.notMatch(JSON.stringify(session.wire), /secret/)
  })

  await t.test('puts parallel calls into one message, each with its own arguments and result', async (t) => {
    const [a, b] = [call('a', 'weather', '{"city":', '"Bonn"}'), call('b', 'time', '{"zone":"CET"}')]
    const server = await serveApp(t, {
      agent: scripted([say('Looking up.'), a[0], b[0], b[1], a[1], a[2], a[3], b[2], ...result('b', 'noon'), ...result('a', '12 C'), ...call('c', 'empty'), ...result('c', '', 'error'), say('Done.', 'r2')].flatMap((event) => event === undefined ? [] : [event]))
    })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run()
    check(t, session, success)
    const messages = session.messages as { id: string, role: string, content?: string, toolCallId?: string, toolCalls?: { id: string, function: object }[] }[]
    t.strictSame(messages[1]?.toolCalls?.slice(0, 2), [
      { id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Bonn"}' } },
      { id: 'b', type: 'function', function: { name: 'time', arguments: '{"zone":"CET"}' } }
    ])
    const results = messages.filter(({ role }) => role === 'tool')
    t.strictSame(new Set(results.map(({ toolCallId, content }) => `${toolCallId}=${content}`)), new Set(['a=12 C', 'b=noon', 'c=']))
    t.equal(new Set(messages.map(({ id }) => id)).size, messages.length, 'no two messages share an id')
    t.equal(messages.at(-1)?.content, 'Done.')
  })

  await t.test('is told of an error before the first event, and after it, with what came before kept', async (t) => {
    const server = await serveApp(t, {
      agents: {
        early: scripted([], { error: new Error('secret') }),
        late: scripted([say('Half'), ...call('a', 'f', '{"x":').slice(0, 2)], { error: new AgentError({ code: 'quota', message: 'Enough for today.', expose: true }) })
      }
    })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run({ runId: 'early', forwardedProps: { agentId: 'early' } })
    check(t, session, { type: 'RUN_ERROR', code: 'INTERNAL_ERROR', message: 'The agent failed.' })
    t.strictSame(session.wire.map(({ type }) => type), ['RUN_STARTED', 'RUN_ERROR'])
    await session.run({ runId: 'late', forwardedProps: { agentId: 'late' } })
    check(t, session, { type: 'RUN_ERROR', code: 'quota', message: 'Enough for today.' })
    t.match(session.messages, [USER, { role: 'assistant', content: 'Half', toolCalls: [{ id: 'a' }] }])
    t.match(session.errors, [{ code: 'INTERNAL_ERROR' }, { code: 'quota' }])
  })

  await t.test('is told that its run was stopped', async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    const heard = session.seen(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    const running = session.run()
    const run = await agent.next()
    run.push(say('Half'))
    await heard
    t.strictSame(await server.stop('thread'), { status: 200, body: { threadId: 'thread', stopped: true } })
    await running
    check(t, session, cancelled)
    t.match(session.messages, [USER, { content: 'Half' }])
    t.equal(session.errors.length, isV1 ? 0 : 1)
  })

  await t.test('interrupts its run by leaving, and can run again at once', async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    const heard = session.seen(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    const running = session.run()
    const run = await agent.next()
    run.push(say('Half'))
    await heard
    const record = await server.host.engine.lastOf({}, 'ag-ui', 'thread')
    session.agent.abortRun()
    await running
    await run.over
    t.match(await record?.ended, { state: 'cancelled', end: { code: 'disconnect' } })
    const again = session.run();
    (await agent.next()).end()
    await again
    check(t, session, success)
  })

  await t.test('is told that its run took too long', async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent, runTimeoutMs: 60 })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    const running = session.run();
    (await agent.next()).push(say('Half'))
    await running
    check(t, session, { type: 'RUN_ERROR', code: 'TIMEOUT_ERROR' })
    t.match(session.errors, [{ code: 'TIMEOUT_ERROR' }])
  })

  await t.test('is told that the thread is busy, without losing what it has', async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent })
    const [one, two] = [open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER]), open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])]
    const running = one.run({ runId: 'one' })
    const run = await agent.next()
    await two.run({ runId: 'two' })
    check(t, two, { type: 'RUN_ERROR', code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: 'Thread "thread" is busy with run "one".' })
    t.strictSame(two.messages, [USER])
    run.end()
    await running
    check(t, one, success)
  })

  await t.test('rejects what was answered by a JSON error, with its status', async (t) => {
    const server = await serveApp(t, { agent: scripted([]) })
    const session = open(`http://127.0.0.1:${server.port}/agui/run/nobody`, 'thread', [USER])
    await t.rejects(session.run(), { message: /404.*AGENT_NOT_FOUND/s })
  })

  await t.test('answers a call of its own tool by the next run', async (t) => {
    const asking = scripted([
      ...call('c9', 'paint', '{"c":"red"}'), { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r1', toolCalls: [{ type: 'tool_use', id: 'c9', name: 'paint', input: { c: 'red' } }] }
    ])
    const server = await serveApp(t, { agents: { asking, thanking: scripted([say('Thanks.', 'r2')]) }, defaultAgent: 'asking', emitToolCallArgs: false })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    const tools = [{ name: 'paint', description: 'Paint the page', parameters: { type: 'object', properties: { c: { type: 'string' } } } }]
    await session.run({ runId: 'one', tools })
    check(t, session, { type: 'RUN_FINISHED', outcome: isV1 ? { type: 'success', pendingToolCallIds: ['c9'] } : undefined })
    t.match(session.messages.at(-1), { role: 'assistant', toolCalls: [{ id: 'c9', function: { name: 'paint', arguments: '{"c":"red"}' } }] })
    session.agent.addMessage({ id: 't1', role: 'tool', toolCallId: 'c9', content: 'done' })
    await session.run({ runId: 'two', tools, forwardedProps: { agentId: 'thanking' } })
    check(t, session, success)
    t.equal((session.messages.at(-1) as { content: string }).content, 'Thanks.')
  })

  await t.test('takes everything else without a word: custom events, raw ones, usage, children, heartbeats of a slow agent', async (t) => {
    const server = await serveApp(t, {
      emitTokenUsage: true,
      baseEventPropertiesEnricherEnabled: true,
      agent: scripted([
        { type: 'MODEL_CALL_START', replyId: 'r1', model: 'm' },
        { type: 'CUSTOM', name: 'progress', value: { done: 1 } },
        { type: 'HINT_BLOCK', replyId: 'r1', hint: 'h' },
        { type: 'TEXT_BLOCK_DELTA', replyId: 'k1', delta: 'child', source: 'main/child' },
        say('x'),
        { type: 'MODEL_CALL_END', replyId: 'r1', usage: { inputTokens: 3, outputTokens: 2 }, model: 'm' }
      ])
    })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER])
    await session.run({ context: [{ description: 'd', value: 'v' }] })
    check(t, session, { ...success, usage: [{ model: 'm', inputTokens: 3, outputTokens: 2 }] })
    t.ok(session.wire.every(({ timestamp }) => Number.isInteger(timestamp)))
  })

  await t.test('works with the platform\'s own fetch', async (t) => {
    const server = await serveApp(t, { agent: scripted([say('Hello.')]) })
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [USER], { isPlatform: true })
    await session.run({ runId: 'one' })
    t.strictSame(session.messages, [USER, { id: 'r1', role: 'assistant', content: 'Hello.' }])
    t.match(session.events.at(-1), { ...success, runId: 'one' })
    t.strictSame(session.warnings, [])
  })

  await t.test('can send a document, and is refused in its stream', async (t) => {
    const agent = scripted([])
    const server = await serveApp(t, { agent })
    const content = [{ type: 'text', text: 'Read' }, { type: 'document', source: { type: 'url', value: 'https://example.org/a.pdf', mimeType: 'application/pdf' } }]
    const session = open(`http://127.0.0.1:${server.port}/agui/run`, 'thread', [{ id: 'u1', role: 'user', content }])
    await session.run()
    check(t, session, { type: 'RUN_ERROR', code: 'INVALID_INPUT_ERROR' })
    t.strictSame(agent.calls, [])
  })
}
