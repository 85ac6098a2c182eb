// The official clients with a human in the loop.
import t, { type Test } from 'tap'
import { memoryStore } from '../../../lib/stores/index.ts'
import { checkOrder } from '../../helpers/ag-ui-check.ts'
import { serveApp, type TestServer } from '../../helpers/ag-ui-app.ts'
import { answer, approving, noted, type NotedTool } from '../../helpers/approving-agent.ts'
import { scripted } from '../../helpers/steered-agent.ts'
import { liveClients, type LiveClient, type Session } from './live.ts'

const PAINT = { name: 'paint', description: 'Paint the page', parameters: { type: 'object', properties: { c: { type: 'string' } } } }
const user = (content: string, id = 'u1'): object => ({ id, role: 'user', content })
const callsOf = (...calls: [name: string, text: string][]): object => ({
  id: 'reply-u1', role: 'assistant', toolCalls: calls.map(([name, text], index) => ({ id: `u1-${index + 1}`, type: 'function', function: { name, arguments: text } }))
})
const [ONE, TWO] = ['reply-u1:u1-1', 'reply-u1:u1-2'] as const
const run = ({ port }: TestServer): string => `http://127.0.0.1:${port}/agui/run`

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

async function scenarios (t: Test, { version, profile, open }: LiveClient): Promise<void> {
  const isV1 = profile === 'v1'
  // The older ones drop what an event says beside its content.
  const keepsMetadata = version !== '0.0.57' && version !== '0.0.58'
  const success = { type: 'RUN_FINISHED', outcome: isV1 ? { type: 'success' } : undefined }

  /** A client that was asked, and what its answer may run. */
  async function asked (t: Test, content = 'del {"path":"a"}', options: object = {}): Promise<{ readonly server: TestServer, readonly session: Session, readonly tool: NotedTool }> {
    const tool = noted('del')
    const server = await serveApp(t, { agent: approving([tool]), ...options })
    const session = open(run(server), 'thread', [user(content)])
    await session.run({ runId: 'one' })
    check(t, session, { outcome: { type: 'interrupt' } })
    return { server, session, tool }
  }
  const transcript = (content: string, metadata?: object): object[] => [
    user('del {"path":"a"}'),
    callsOf(['del', '{"path":"a"}']),
    { id: 'act-two:u1-1', role: 'tool', toolCallId: 'u1-1', content, ...keepsMetadata && metadata !== undefined && { metadata } },
    { id: 'act-two-done', role: 'assistant', content: 'Done.' }
  ]

  await t.test('approves', async (t) => {
    const { session, tool } = await asked(t)
    t.match(session.agent.pendingInterrupts, [{ id: ONE, reason: 'tool_call', toolCallId: 'u1-1', metadata: { toolName: 'del', toolInput: { path: 'a' } }, responseSchema: { required: ['approved'] } }])
    t.strictSame(session.messages, [user('del {"path":"a"}'), callsOf(['del', '{"path":"a"}'])])
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true })] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('del ok'))
    t.strictSame(session.agent.pendingInterrupts, [])
    t.strictSame(tool.ran, [{ path: 'a' }])
  })

  await t.test('denies and says why', async (t) => {
    const { session, tool } = await asked(t)
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: false, reason: 'wrong folder' })] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('wrong folder', { 'agentscope.toolState': 'DENIED' }))
    t.strictSame([session.agent.pendingInterrupts, tool.ran], [[], []])
  })

  await t.test('gives a question up', async (t) => {
    const { session, tool } = await asked(t)
    await session.run({ runId: 'two', resume: [answer(ONE, undefined, 'cancelled')] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('Permission denied by user', { 'agentscope.toolState': 'DENIED' }))
    t.strictSame([session.agent.pendingInterrupts, tool.ran], [[], []])
  })

  await t.test('edits the arguments, and learns what was run', async (t) => {
    const { session, tool } = await asked(t)
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true, editedArgs: { path: 'b' } })] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('del ok', { 'agentscope.editedArgs': { path: 'b' } }))
    t.match(session.wire[1], { metadata: { 'agentscope.editedArgs': { path: 'b' } } })
    t.strictSame(tool.ran, [{ path: 'b' }])
  })

  await t.test('answers two questions of one batch', async (t) => {
    const { session, tool } = await asked(t, 'del {"path":"a"}\ndel {"path":"b"}')
    t.match(session.agent.pendingInterrupts, [{ id: ONE }, { id: TWO }])
    await t.rejects(session.run({ resume: [answer(ONE, { approved: true })] }), { message: /pending interrupt/ }, 'the client itself demands both')
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: false }), answer(TWO, { approved: true })] })
    check(t, session, success)
    t.match(session.messages.slice(2), [{ toolCallId: 'u1-1', content: 'Permission denied by user' }, { toolCallId: 'u1-2', content: 'del ok' }, { content: 'Done.' }])
    t.strictSame(tool.ran, [{ path: 'b' }])
  })

  await t.test('goes on talking after an answer, and is asked again', async (t) => {
    const { session, tool } = await asked(t)
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true })] })
    session.agent.addMessage(user('del {"path":"z"}', 'u2') as never)
    await session.run({ runId: 'three' })
    check(t, session, { outcome: { type: 'interrupt', interrupts: [{ id: 'reply-u2:u2-1' }] } })
    await session.run({ runId: 'four', resume: [answer('reply-u2:u2-1', { approved: true })] })
    check(t, session, success)
    t.strictSame(tool.ran, [{ path: 'a' }, { path: 'z' }])
    t.strictSame(session.messages.map((message) => (message as { id: string }).id), ['u1', 'reply-u1', 'act-two:u1-1', 'act-two-done', 'u2', 'reply-u2', 'act-four:u2-1', 'act-four-done'])
  })

  await t.test('runs its own tool, and answers it by the next run', async (t) => {
    const server = await serveApp(t, { agent: approving([]) })
    const session = open(run(server), 'thread', [user('paint {"c":"red"}')])
    await session.run({ runId: 'one', tools: [PAINT] })
    check(t, session, { type: 'RUN_FINISHED', outcome: isV1 ? { type: 'success', pendingToolCallIds: ['u1-1'] } : undefined })
    t.strictSame(session.agent.pendingInterrupts, [])
    session.agent.addMessage({ id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'painted' } as never)
    await session.run({ runId: 'two', tools: [PAINT] })
    check(t, session, success)
    t.strictSame(session.messages.slice(2), [{ id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'painted' }, { id: 'reply-t1', role: 'assistant', content: 'Tools: paint' }])
  })

  await t.test('answers its own tool and a question at once', async (t) => {
    const tool = noted('del')
    const server = await serveApp(t, { agent: approving([tool]) })
    const session = open(run(server), 'thread', [user('paint {"c":"red"}\ndel {"path":"a"}')])
    await session.run({ runId: 'one', tools: [PAINT] })
    check(t, session, { outcome: { type: 'interrupt', interrupts: [{ id: TWO }] } })
    session.agent.addMessage({ id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'painted' } as never)
    await session.run({ runId: 'two', tools: [PAINT], resume: [answer(TWO, { approved: true })] })
    check(t, session, success)
    t.match(session.messages.slice(2), [{ toolCallId: 'u1-1', content: 'painted' }, { toolCallId: 'u1-2', content: 'del ok' }, { content: 'Done.' }])
    t.strictSame(tool.ran, [{ path: 'a' }])
  })

  await t.test('answers after the server was restarted', async (t) => {
    const store = memoryStore()
    const { server, session, tool } = await asked(t, undefined, { store })
    await server.app.close()
    const next = await serveApp(t, { agent: approving([tool]), store })
    session.agent.url = run(next)
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true, editedArgs: { path: 'b' } })] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('del ok', { 'agentscope.editedArgs': { path: 'b' } }))
    t.strictSame(tool.ran, [{ path: 'b' }])
  })

  await t.test('is shown the question by a page that was loaded anew, and answers there', async (t) => {
    const { server, session, tool } = await asked(t)
    const fresh = open(`http://127.0.0.1:${server.port}/agui/connect`, 'thread')
    await fresh.run()
    check(t, fresh, { outcome: { type: 'interrupt' } })
    t.strictSame(fresh.agent.pendingInterrupts, session.agent.pendingInterrupts)
    t.strictSame(fresh.messages, session.messages)
    fresh.agent.url = run(server)
    await fresh.run({ runId: 'two', resume: [answer(ONE, { approved: true })] })
    check(t, fresh, success)
    t.strictSame(fresh.messages, transcript('del ok'))

    // The old page's answer comes too late; loaded anew, it has nothing to answer any more.
    await session.run({ runId: 'three', resume: [answer(ONE, { approved: false })] })
    check(t, session, { type: 'RUN_ERROR', code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
    session.agent.url = `http://127.0.0.1:${server.port}/agui/connect`
    session.agent.pendingInterrupts = []
    await session.run()
    check(t, session, success)
    t.strictSame([session.messages, session.agent.pendingInterrupts], [fresh.messages, []])
    t.strictSame(tool.ran, [{ path: 'a' }])
  })

  await t.test('keeps its question after a wrong answer, and gives the right one', async (t) => {
    const { session, tool } = await asked(t)
    const wrong: [object[], string, RegExp][] = [
      [[answer(ONE, { approved: true }), answer('x', { approved: true })], 'AGUI_INTERRUPT_CONTRACT_ERROR', /Unknown: x/],
      [[answer(ONE, { approved: true }), answer(ONE, { approved: true })], 'AGUI_INTERRUPT_CONTRACT_ERROR', /more than once/],
      [[answer(ONE, { approved: true, editedArgs: 'x' })], 'INVALID_INPUT_ERROR', /must be an object/]
    ]
    for (const [resume, code, message] of wrong) {
      await session.run({ runId: 'wrong', resume })
      check(t, session, { type: 'RUN_ERROR', code, message })
      t.match(session.agent.pendingInterrupts, [{ id: ONE }])
    }
    t.strictSame([session.messages, tool.ran], [[user('del {"path":"a"}'), callsOf(['del', '{"path":"a"}'])], []])
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true })] })
    check(t, session, success)
    t.strictSame(session.messages, transcript('del ok'))
    t.strictSame(tool.ran, [{ path: 'a' }])
  })

  await t.test('can give up what has expired, if it can', async (t) => {
    const { session, tool } = await asked(t, undefined, { interruptTtlMs: 1 })
    t.match(session.agent.pendingInterrupts, [{ id: ONE, expiresAt: String }])
    await t.rejects(session.run({ resume: [answer(ONE, { approved: true })] }), { message: /expired/ }, 'the client itself refuses')
    const givenUp = session.run({ runId: 'two', resume: [answer(ONE, undefined, 'cancelled')] })
    // Those before 1.0 refuse that too: only a page that is loaded anew gets on.
    if (!isV1) return await t.rejects(givenUp, { message: /expired/ })
    await givenUp
    check(t, session, success)
    t.strictSame([session.agent.pendingInterrupts, tool.ran], [[], []])
  })

  await t.test('gets on after an answer that failed half-way', async (t) => {
    const server = await serveApp(t, { agents: { working: approving([noted('del')]), failing: scripted([], { error: new Error('power cut') }) }, defaultAgent: 'working' })
    const session = open(run(server), 'thread', [user('del {"path":"a"}')])
    await session.run({ runId: 'one' })
    await session.run({ runId: 'two', resume: [answer(ONE, { approved: true })], forwardedProps: { agentId: 'failing' } })
    check(t, session, { type: 'RUN_ERROR', code: 'INTERNAL_ERROR' })
    t.match(session.agent.pendingInterrupts, [{ id: ONE }])
    session.agent.addMessage(user('And now?', 'u2') as never)
    await session.run({ runId: 'three', resume: [answer(ONE, undefined, 'cancelled')] })
    check(t, session, success)
    t.strictSame(session.agent.pendingInterrupts, [])
  })
}
