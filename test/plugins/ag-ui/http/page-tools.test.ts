// Tools that run in the page (ag-ui 19).
import t, { type Test } from 'tap'
import { type AgentEventInit, type ToolMergeModeName } from '../../../../lib/agent/index.ts'
import { eventsOf, serveApp, type AppOptions, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { answer, approving, noted, type Approving, type NotedTool } from '../../../helpers/approving-agent.ts'
import { scripted } from '../../../helpers/steered-agent.ts'

const PAINT = { name: 'paint', description: 'Paint the page', parameters: { type: 'object', properties: { c: { type: 'string' } } } }
const user = (content: string, id = 'u1'): object => ({ id, role: 'user', content })
const asked = (content: string, ...calls: [name: string, text: string][]): object[] => [user(content), {
  id: 'reply-u1', role: 'assistant', toolCalls: calls.map(([name, text], index) => ({ id: `u1-${index + 1}`, type: 'function', function: { name, arguments: text } }))
}]
const result = (content: string, toolCallId = 'u1-1'): object => ({ id: `t-${toolCallId}`, role: 'tool', toolCallId, content })
const CALLED = asked('paint {"c":"red"}', ['paint', '{"c":"red"}'])

interface Page { readonly server: TestServer, readonly agent: Approving, readonly read: NotedTool, readonly del: NotedTool }

async function page (t: Test, options: AppOptions = {}): Promise<Page> {
  const read = noted('read', { needsApproval: false })
  const del = noted('del')
  const agent = approving([read, del])
  return { server: await serveApp(t, { agent, ...options }), agent, read, del }
}

const textOf = (events: readonly WireEvent[]): string => events.map((event) => event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '').join('')

t.test('a call of the page ends the run as success, unanswered, with its arguments whatever the options say', async (t) => {
  for (const legacy of [false, true]) {
    const { server } = await page(t, { emitToolCallArgs: false })
    const events = await eventsOf(await server.run({ messages: [user('paint {"c":"red"}')], tools: [PAINT], ...legacy && { protocolVersion: undefined } }))
    t.strictSame(events.slice(1), [
      { type: 'TOOL_CALL_START', toolCallId: 'u1-1', toolCallName: 'paint', parentMessageId: 'reply-u1' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'u1-1', delta: '{"c":"red"}' },
      { type: 'TOOL_CALL_END', toolCallId: 'u1-1' },
      { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', ...!legacy && { outcome: { type: 'success', pendingToolCallIds: ['u1-1'] } } }
    ])
    t.strictSame(await server.host.engine.openInterrupts({}, 'ag-ui', 'thread'), [])
  }
})

t.test('the next run brings the result, and the agent goes on', async (t) => {
  const { server, agent } = await page(t)
  await eventsOf(await server.run({ messages: [user('paint {"c":"red"}')], tools: [PAINT] }))
  const events = await eventsOf(await server.run({ runId: 'two', messages: [...CALLED, result('done')], tools: [PAINT] }))
  t.equal(textOf(events), 'Tools: read,del,paint')
  t.match(events.at(-1), { outcome: { type: 'success' } })
  t.strictSame(agent.inputs[1]?.messages.slice(1), [
    { id: 'reply-u1', role: 'ASSISTANT', content: [{ type: 'tool_use', id: 'u1-1', name: 'paint', input: { c: 'red' }, content: '{"c":"red"}', state: 'finished' }] },
    { id: 't-u1-1', role: 'TOOL', content: [{ type: 'tool_result', id: 'u1-1', name: 'paint', output: [{ type: 'text', text: 'done' }], state: 'success' }] }
  ])
  t.strictSame(agent.inputs[1]?.resume, undefined)
})

t.test('calls of the server in the same batch are run and answered at once', async (t) => {
  const { server, read } = await page(t)
  const events = await eventsOf(await server.run({ messages: [user('read {"a":1}\npaint {"c":"red"}\npaint {"c":"blue"}')], tools: [PAINT] }))
  t.match(events.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ toolCallId: 'u1-1', content: 'read ok' }])
  t.match(events.at(-1), { outcome: { type: 'success', pendingToolCallIds: ['u1-2', 'u1-3'] } })
  t.strictSame(read.ran, [{ a: 1 }])
})

t.test('with an approval in the batch the run ends with the question; one request brings both answers', async (t) => {
  const { server, agent, del } = await page(t)
  const events = await eventsOf(await server.run({ messages: [user('paint {"c":"red"}\ndel {"a":1}')], tools: [PAINT] }))
  t.strictSame(events.at(-1)?.type === 'RUN_FINISHED' && Object.keys(events.at(-1) ?? {}), ['type', 'threadId', 'runId', 'outcome'])
  t.match(events.at(-1), { outcome: { type: 'interrupt', interrupts: [{ id: 'reply-u1:u1-2', toolCallId: 'u1-2' }] } })
  const transcript = asked('paint {"c":"red"}\ndel {"a":1}', ['paint', '{"c":"red"}'], ['del', '{"a":1}'])
  // The page's result alone leaves the question open.
  const [, error] = await eventsOf(await server.run({ runId: 'two', messages: [...transcript, result('done')], tools: [PAINT] }), { ids: false })
  t.match(error, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
  const told = await eventsOf(await server.run({ runId: 'two', messages: [...transcript, result('done')], tools: [PAINT], resume: [answer('reply-u1:u1-2', { approved: true })] }))
  t.match(told.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ toolCallId: 'u1-2', content: 'del ok' }])
  t.match(agent.inputs[1]?.messages.slice(1), [{ content: [{ id: 'u1-1', state: 'finished' }, { id: 'u1-2', state: 'pending' }] }, { id: 't-u1-1' }])
  t.strictSame(del.ran, [{ a: 1 }])
})

t.test('a call of the page that is waited for again is named again', async (t) => {
  const call = { type: 'tool_use' as const, id: 'c', name: 'paint', input: {} }
  const pause: readonly AgentEventInit[] = [{ type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [call] }]
  const approval: AgentEventInit = { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ ...call, id: 'd', name: 'del' }] }
  let runs = 0
  const server = await serveApp(t, { agent: { name: 'patient', capabilities: { resume: true }, stream: async function * () { yield * runs++ === 0 ? [...pause, approval] : pause } } })
  await eventsOf(await server.run({ tools: [PAINT] }))
  const events = await eventsOf(await server.run({ runId: 'two', messages: [], resume: [answer('r:d', { approved: true })] }))
  t.strictSame(events.slice(1), [{ type: 'RUN_FINISHED', threadId: 'thread', runId: 'two', outcome: { type: 'success', pendingToolCallIds: ['c'] } }])
})

t.test('a call that its user has passed over gets a result that says so; one that may still come does not', async (t) => {
  const { server, agent } = await page(t)
  await eventsOf(await server.run({ messages: [...CALLED, user('Never mind', 'u2')], tools: [PAINT] }))
  t.strictSame(agent.inputs[0]?.messages.slice(1), [
    { id: 'reply-u1', role: 'ASSISTANT', content: [{ type: 'tool_use', id: 'u1-1', name: 'paint', input: { c: 'red' }, content: '{"c":"red"}', state: 'pending' }] },
    {
      id: 'agui-unanswered-u1-1',
      role: 'TOOL',
      content: [{ type: 'tool_result', id: 'u1-1', name: 'paint', output: [{ type: 'text', text: 'The tool call was not answered.' }], state: 'error' }],
      metadata: { agentscope_synthetic: true }
    },
    { id: 'u2', role: 'USER', content: [{ type: 'text', text: 'Never mind' }] }
  ])
  await eventsOf(await server.run({ runId: 'two', messages: CALLED, tools: [PAINT] }))
  t.strictSame(agent.inputs[1]?.messages.length, 2)
})

t.test('a result that comes late, or twice, or for nobody wedges nothing', async (t) => {
  const { server, agent } = await page(t)
  const late = [...CALLED, user('Never mind', 'u2'), result('done')]
  await eventsOf(await server.run({ messages: [...late, { ...result('again'), id: 'twice' }, result('x', 'nobody')], tools: [PAINT] }))
  t.strictSame(agent.inputs[0]?.messages.map(({ id }) => id), ['u1', 'reply-u1', 'u2', 't-u1-1', 't-nobody'])
  t.match((await eventsOf(await server.run({ runId: 'two', messages: [...late, user('Go on', 'u3')], tools: [PAINT] }))).at(-1), { outcome: { type: 'success' } })
})

t.test('modes: whose tools the model sees, and who runs the one that both have', async (t) => {
  const shared = { name: 'read', description: 'The page\'s own' }
  const rows: [ToolMergeModeName | undefined, string, string, 'page' | 'server' | 'nobody'][] = [
    [undefined, 'del,paint,read', 'read,del', 'page'],
    ['MERGE_EXTERNAL_PRIORITY', 'del,paint,read', 'read,del', 'page'],
    ['MERGE_FRONTEND_PRIORITY', 'del,paint,read', 'read,del', 'page'],
    ['MERGE_AGENT_PRIORITY', 'read,del,paint', 'read,del', 'server'],
    ['EXTERNAL_ONLY', 'paint,read', '', 'page'],
    ['FRONTEND_ONLY', 'paint,read', '', 'page'],
    ['AGENT_ONLY', 'read,del', 'read,del', 'server']
  ]
  for (const [toolMergeMode, both, alone, who] of rows) {
    const name = toolMergeMode ?? 'by default'
    const { server, read } = await page(t, { ...toolMergeMode !== undefined && { toolMergeMode } })
    const see = async (runId: string, tools: readonly object[]): Promise<string> => textOf(await eventsOf(await server.run({ runId, messages: [user('Which?')], tools })))
    t.equal(await see('one', [PAINT, shared]), `Tools: ${both}`, name)
    t.equal(await see('two', []), `Tools: ${alone}`, `${name} without tools`)
    const events = await eventsOf(await server.run({ runId: 'three', messages: [user('read {"a":1}')], tools: [PAINT, shared] }))
    t.match(events.at(-1), { outcome: who === 'page' ? { type: 'success', pendingToolCallIds: ['u1-1'] } : { type: 'success' } }, name)
    t.equal(read.ran.length, who === 'server' ? 1 : 0, name)
  }
})

t.test('two runs of one agent at the same time never see each other\'s tools', async (t) => {
  const { server } = await page(t)
  const said = await Promise.all(['red', 'blue', 'green'].map(async (name) => textOf(await eventsOf(await server.run({ threadId: name, messages: [user('Which?')], tools: [{ ...PAINT, name }] })))))
  t.strictSame(said, ['Tools: read,del,red', 'Tools: read,del,blue', 'Tools: read,del,green'])
})

t.test('with frontendToolOutcome interrupt a call of the page is a question, answered by resume or by its message', async (t) => {
  for (const answered of [{ messages: CALLED, resume: [answer('reply-u1:u1-1', 'done')] }, { messages: [...CALLED, result('done')] }]) {
    const { server, agent } = await page(t, { frontendToolOutcome: 'interrupt' })
    const events = await eventsOf(await server.run({ messages: [user('paint {"c":"red"}')], tools: [PAINT] }))
    t.strictSame(events.at(-1), {
      type: 'RUN_FINISHED',
      threadId: 'thread',
      runId: 'run',
      outcome: {
        type: 'interrupt',
        interrupts: [{ id: 'reply-u1:u1-1', reason: 'tool_call', toolCallId: 'u1-1', metadata: { toolName: 'paint', toolInput: { c: 'red' }, toolContent: '{"c":"red"}', replyId: 'reply-u1' } }]
      }
    })
    t.match((await eventsOf(await server.run({ runId: 'two', tools: [PAINT], ...answered }))).at(-1), { outcome: { type: 'success' } })
    t.match(agent.inputs[1]?.resume, [{ kind: 'result', toolCallId: 'u1-1', output: [{ text: 'done' }] }])
  }
})

t.test('a tool message of a run that failed is taken by the next one', async (t) => {
  const server = await serveApp(t, { agents: { working: approving([]), broken: scripted([], { error: new Error('no') }) }, defaultAgent: 'working' })
  await eventsOf(await server.run({ messages: [user('paint {"c":"red"}')], tools: [PAINT] }))
  const messages = [...CALLED, result('done')]
  t.match((await eventsOf(await server.run({ runId: 'two', messages }, { path: '/agui/run/broken' }))).at(-1), { type: 'RUN_ERROR' })
  t.match((await eventsOf(await server.run({ runId: 'three', messages }))).at(-1), { outcome: { type: 'success' } })
})
