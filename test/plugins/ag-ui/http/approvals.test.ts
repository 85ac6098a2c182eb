import t, { type Test } from 'tap'
import { deniedByUser } from '../../../../lib/agent/index.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, serveApp, type AppOptions, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { answer, approving, noted, type ApprovingOptions, type Approving, type NotedTool } from '../../../helpers/approving-agent.ts'

const USER = { id: 'u1', role: 'user', content: 'del {"path":"a"}' }
const CALL = { id: 'u1-1', type: 'function', function: { name: 'del', arguments: '{"path":"a"}' } }
const ASKED = [USER, { id: 'reply-u1', role: 'assistant', toolCalls: [CALL] }]
const ID = 'reply-u1:u1-1'

interface Asked { readonly server: TestServer, readonly agent: Approving, readonly tool: NotedTool, readonly events: WireEvent[] }

/** A thread whose first run has ended with a question. */
async function asked (t: Test, content = USER.content, options: AppOptions & { readonly approving?: ApprovingOptions } = {}): Promise<Asked> {
  const { approving: of, ...rest } = options
  const tool = noted('del')
  const agent = approving([tool, noted('read', { needsApproval: false })], of)
  const server = await serveApp(t, { agent, ...rest })
  const events = await eventsOf(await server.run({ messages: [{ ...USER, content }] }))
  return { server, agent, tool, events }
}

/** What the answering run told between its start and its end. */
async function answered (server: TestServer, resume: unknown, input: object = {}): Promise<WireEvent[]> {
  return (await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume, ...input }))).slice(1)
}

const RESULT = { type: 'TOOL_CALL_RESULT', messageId: 'act-two:u1-1', toolCallId: 'u1-1', content: 'del ok', role: 'tool' }
const SAID = [
  { type: 'TEXT_MESSAGE_START', messageId: 'act-two-done', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'act-two-done', delta: 'Done.' },
  { type: 'TEXT_MESSAGE_END', messageId: 'act-two-done' }
]
const SUCCESS = { type: 'RUN_FINISHED', threadId: 'thread', runId: 'two', outcome: { type: 'success' } }

t.test('an approved call runs once, with its stored arguments, and its call is not told again', async (t) => {
  const { server, agent, tool, events } = await asked(t)
  t.strictSame(events.slice(1), [
    { type: 'TOOL_CALL_START', toolCallId: 'u1-1', toolCallName: 'del', parentMessageId: 'reply-u1' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'u1-1', delta: '{"path":"a"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'u1-1' },
    {
      type: 'RUN_FINISHED',
      threadId: 'thread',
      runId: 'run',
      outcome: {
        type: 'interrupt',
        interrupts: [{
          id: ID,
          reason: 'tool_call',
          toolCallId: 'u1-1',
          message: "Tool 'del' requires user confirmation before execution",
          responseSchema: {
            type: 'object',
            properties: {
              approved: { type: 'boolean' },
              editedArgs: { type: 'object', description: 'Full replacement of the tool args. Not merged.' },
              reason: { type: 'string', description: 'Optional explanation supplied when the tool call is denied.' }
            },
            required: ['approved']
          },
          metadata: { 'agentscope.interruptKind': 'permission_confirm', toolName: 'del', toolInput: { path: 'a' }, toolContent: '{"path":"a"}', replyId: 'reply-u1' }
        }]
      }
    }
  ])
  t.strictSame(tool.ran, [])
  // What a client says the call was is of no interest.
  const forged = [USER, { ...ASKED[1], toolCalls: [{ ...CALL, function: { name: 'del', arguments: '{"path":"/etc"}' } }] }]
  t.strictSame(await answered(server, [answer(ID, { approved: true })], { messages: forged }), [RESULT, ...SAID, SUCCESS])
  t.strictSame(tool.ran, [{ path: 'a' }])
  t.strictSame(agent.inputs[1]?.resume, [{
    kind: 'confirm',
    toolCallId: 'u1-1',
    approved: true,
    toolCall: { type: 'tool_use', id: 'u1-1', name: 'del', input: { path: 'a' }, content: '{"path":"a"}', metadata: {}, state: 'allowed' }
  }])
  t.match((await eventsOf(await server.run({ runId: 'three' }))).at(-1), { outcome: { type: 'success' } }, 'the thread is free')
})

t.test('what is no yes is a no, and the model is told why', async (t) => {
  const rows: [unknown, string, 'resolved' | 'cancelled'][] = [
    [{ approved: false, reason: 'wrong folder' }, 'wrong folder', 'resolved'],
    [{ approved: false, reason: '  ' }, deniedByUser, 'resolved'],
    [{ approved: false, reason: 7 }, deniedByUser, 'resolved'],
    [{ approved: false, editedArgs: { path: 'b' } }, deniedByUser, 'resolved'],
    [{ approved: 'true' }, deniedByUser, 'resolved'],
    [{ approved: 1, reason: 'one' }, 'one', 'resolved'],
    [{}, deniedByUser, 'resolved'],
    ['yes', deniedByUser, 'resolved'],
    [undefined, deniedByUser, 'resolved'],
    [null, deniedByUser, 'resolved'],
    [{ approved: true, reason: 'never mind' }, deniedByUser, 'cancelled'],
    [undefined, deniedByUser, 'cancelled']
  ]
  for (const [payload, content, status] of rows) {
    const { server, tool } = await asked(t)
    t.strictSame(await answered(server, [answer(ID, payload, status)]), [
      { ...RESULT, content, metadata: { 'agentscope.toolState': 'DENIED' } }, ...SAID, SUCCESS
    ], JSON.stringify(payload))
    t.strictSame(tool.ran, [])
  }
})

t.test('edited arguments replace the stored ones whole; the provider\'s metadata stays', async (t) => {
  const metadata = { thoughtSignature: 's1' }
  const { server, agent, tool } = await asked(t, 'del {"path":"a","force":true}', { approving: { metadata } })
  t.strictSame(await answered(server, [answer(ID, { approved: true, editedArgs: { path: 'b', deep: { x: null } } })]), [
    { ...RESULT, metadata: { 'agentscope.editedArgs': { path: 'b', deep: { x: null } } } }, ...SAID, SUCCESS
  ])
  t.strictSame(tool.ran, [{ path: 'b', deep: { x: null } }])
  t.match(agent.inputs[1]?.resume, [{
    editedArgs: { path: 'b', deep: { x: null } },
    toolCall: { input: { path: 'b', deep: { x: null } }, content: '{"path":"b","deep":{"x":null}}', metadata }
  }])
  const { server: other } = await asked(t)
  t.match(await answered(other, [answer(ID, { approved: true, editedArgs: {} })]), [{ metadata: { 'agentscope.editedArgs': {} } }])
})

t.test('edited arguments that are no object are refused, even with a denial, and may be corrected', async (t) => {
  const { server, agent, tool } = await asked(t)
  for (const editedArgs of [null, 'x', [1], 1, true]) {
    for (const approved of [true, false]) {
      const refused = await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: [answer(ID, { approved, editedArgs })] }), { ids: false })
      t.match(refused, [{ type: 'RUN_STARTED' }, { type: 'RUN_ERROR', code: 'INVALID_INPUT_ERROR', message: 'The edited arguments of u1-1 must be an object.' }])
    }
  }
  t.equal(agent.inputs.length, 1)
  t.strictSame(await answered(server, [answer(ID, { approved: true, editedArgs: { path: 'b' } })]), [
    { ...RESULT, metadata: { 'agentscope.editedArgs': { path: 'b' } } }, ...SAID, SUCCESS
  ])
  t.strictSame(tool.ran, [{ path: 'b' }])
})

t.test('two calls of one batch are answered together, each in its own way; a third needed no answer', async (t) => {
  const { server, tool, events } = await asked(t, 'del {"path":"a"}\nread {"path":"b"}\ndel {"path":"c"}')
  t.match(events.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ toolCallId: 'u1-2', content: 'read ok' }])
  t.match(events.at(-1), { outcome: { interrupts: [{ id: 'reply-u1:u1-1' }, { id: 'reply-u1:u1-3' }] } })
  const told = await answered(server, [answer('reply-u1:u1-3', { approved: true }), answer('reply-u1:u1-1', { approved: false, reason: 'no' })])
  t.strictSame(told, [
    { ...RESULT, content: 'no', metadata: { 'agentscope.toolState': 'DENIED' } },
    { ...RESULT, messageId: 'act-two:u1-3', toolCallId: 'u1-3' },
    ...SAID,
    SUCCESS
  ])
  t.strictSame(tool.ran, [{ path: 'c' }])
})

t.test('CopilotKit sends its answer twice, under the interrupted run\'s id: one result comes of it', async (t) => {
  const { server, agent, tool } = await asked(t)
  const messages = [...ASKED, { id: 'kit', role: 'tool', toolCallId: 'u1-1', content: '{"approved":true}' }]
  const told = await eventsOf(await server.run({ messages, resume: [answer(ID, { approved: true })] }))
  t.match(told, [{ type: 'RUN_STARTED', runId: 'run', input: { messages: ASKED } }, { ...RESULT, messageId: 'act-run:u1-1' }])
  t.strictSame(agent.inputs[1]?.messages.map(({ id }) => id), ['u1', 'reply-u1'])
  t.strictSame(tool.ran, [{ path: 'a' }])
  // The client keeps both; what this server has said is the result.
  const later = [...messages, { id: 'act-run:u1-1', role: 'tool', toolCallId: 'u1-1', content: 'del ok' }, { id: 'u2', role: 'user', content: 'And?' }]
  await eventsOf(await server.run({ runId: 'three', messages: later }))
  t.strictSame(agent.inputs[2]?.messages.map(({ id }) => id), ['u1', 'reply-u1', 'act-run:u1-1', 'u2'])
})

t.test('answers without a transcript go on where the thread stands', async (t) => {
  const tools = [{ name: 'paint', description: 'Paint', parameters: { type: 'object' } }]
  const context = [{ description: 'locale', value: 'de' }]
  const tool = noted('del')
  const agent = approving([tool])
  const server = await serveApp(t, { agent })
  await eventsOf(await server.run({ messages: [USER], tools, context, state: { cart: [1] } }))
  const [started] = await eventsOf(await server.run({ runId: 'two', messages: [], resume: [answer(ID, { approved: true })] }))
  t.match(started, { input: { messages: ASKED, tools, context, state: { cart: [1] } } })
  t.match(agent.inputs[1], { messages: [{ id: 'agui-context' }, { id: 'u1' }, { id: 'reply-u1', content: [{ id: 'u1-1', state: 'pending' }] }], tools: { definitions: tools }, state: { cart: [1] }, context })
  t.strictSame(tool.ran, [{ path: 'a' }])
  // What the request brings itself stands.
  await eventsOf(await server.run({ runId: 'three', messages: [{ ...USER, id: 'u2' }], tools, state: 1 }))
  await eventsOf(await server.run({ runId: 'four', messages: [], tools: [{ name: 'other', description: '' }], state: 2, resume: [answer('reply-u2:u2-1', { approved: true })] }))
  t.match(agent.inputs[3], { tools: { definitions: [{ name: 'other' }] }, state: 2 })
})

t.test('the agent finds the questions in its context, as their client was told of them', async (t) => {
  const { server, agent, events } = await asked(t)
  await answered(server, [answer(ID, { approved: true })])
  const terminal = events.at(-1)
  t.strictSame(agent.contexts[0]?.attributes.has('agui.resume.interrupts'), false)
  t.strictSame(agent.contexts[1]?.attributes.get('agui.resume.interrupts'), { [ID]: terminal?.type === 'RUN_FINISHED' && terminal.outcome?.type === 'interrupt' && terminal.outcome.interrupts[0] })
  t.strictSame(agent.contexts[1]?.attributes.get('agui.resume'), [answer(ID, { approved: true })])
})

t.test('a run that answers may ask again, and so on', async (t) => {
  const { server, tool } = await asked(t)
  const again = { id: 'u2', role: 'user', content: 'del {"path":"z"}' }
  await answered(server, [answer(ID, { approved: true })])
  const asking = await eventsOf(await server.run({ runId: 'three', messages: [...ASKED, again] }))
  t.match(asking.at(-1), { outcome: { interrupts: [{ id: 'reply-u2:u2-1' }] } })
  await eventsOf(await server.run({ runId: 'four', messages: [...ASKED, again], resume: [answer('reply-u2:u2-1', { approved: true })] }))
  t.strictSame(tool.ran, [{ path: 'a' }, { path: 'z' }])
})
