// Calls that are executed by somebody else: suspended tools of the server (ag-ui 20.3), and questions.
import t, { type Test } from 'tap'
import { ToolSuspended, type AgentEventInit, type Tool } from '../../../../lib/agent/index.ts'
import { eventsOf, serveApp, type AppOptions, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { answer, approving, noted, type ApprovingOptions, type Approving } from '../../../helpers/approving-agent.ts'
import { scripted } from '../../../helpers/steered-agent.ts'

const USER = { id: 'u1', role: 'user', content: 'wire {"sum":5}' }
const ASKED = [USER, { id: 'reply-u1', role: 'assistant', toolCalls: [{ id: 'u1-1', type: 'function', function: { name: 'wire', arguments: '{"sum":5}' } }] }]
const ID = 'reply-u1:u1-1'
const wire: Tool = { name: 'wire', execute: async () => { throw new ToolSuspended('Waiting for the bank') } }
const RESULT = { type: 'TOOL_CALL_RESULT', messageId: 'act-two:u1-1', toolCallId: 'u1-1', role: 'tool' }

interface Suspended { readonly server: TestServer, readonly agent: Approving, readonly events: WireEvent[] }

async function suspended (t: Test, options: AppOptions & { readonly approving?: ApprovingOptions, readonly tool?: Tool } = {}): Promise<Suspended> {
  const { approving: of, tool = wire, ...rest } = options
  const agent = approving([tool, noted('del')], of)
  const server = await serveApp(t, { agent, ...rest })
  return { server, agent, events: await eventsOf(await server.run({ messages: [USER] })) }
}

const results = (events: readonly WireEvent[]): WireEvent[] => events.filter(({ type }) => type === 'TOOL_CALL_RESULT')

t.test('a suspended call ends the run with its own words, and without a result', async (t) => {
  const { events } = await suspended(t)
  t.strictSame(events.slice(1), [
    { type: 'TOOL_CALL_START', toolCallId: 'u1-1', toolCallName: 'wire', parentMessageId: 'reply-u1' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'u1-1', delta: '{"sum":5}' },
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
          message: 'Waiting for the bank',
          metadata: { toolName: 'wire', toolInput: { sum: 5 }, toolContent: '{"sum":5}', replyId: 'reply-u1' }
        }]
      }
    }
  ])
})

t.test('its answer is its result: nothing is empty text, text is itself, anything else is JSON', async (t) => {
  for (const [payload, content] of [[undefined, ''], [null, ''], ['paid', 'paid'], ['', ''], [{ paid: null }, '{"paid":null}'], [[1], '[1]'], [false, 'false'], [0, '0']] as const) {
    const { server, agent } = await suspended(t)
    const events = await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: [answer(ID, payload)] }))
    t.strictSame(results(events), [{ ...RESULT, content }], JSON.stringify(payload))
    t.strictSame(agent.inputs[1]?.messages.slice(2), [{
      id: `agui-resume-${ID}`,
      role: 'TOOL',
      content: [{ type: 'tool_result', id: 'u1-1', name: 'wire', output: [{ type: 'text', text: content }], state: 'success' }],
      metadata: { 'agui.interruptId': ID, 'agui.resumeStatus': 'resolved' }
    }])
    t.match(agent.inputs[1]?.resume, [{ kind: 'result', toolCallId: 'u1-1', toolName: 'wire', output: [{ type: 'text', text: content }], state: 'success', metadata: { 'agui.interruptId': ID } }])
  }
})

t.test('a cancelled one says so, and was interrupted', async (t) => {
  const { server, agent } = await suspended(t)
  const events = await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: [answer(ID, 'ignored', 'cancelled')] }))
  t.strictSame(results(events), [{ ...RESULT, content: 'The tool call was cancelled by the user.', metadata: { 'agentscope.toolState': 'INTERRUPTED' } }])
  t.match(agent.inputs[1]?.messages.at(-1), { content: [{ state: 'interrupted' }], metadata: { 'agui.resumeStatus': 'cancelled' } })
})

t.test('a result that the agent says nothing about is told at the end, once', async (t) => {
  const { server } = await suspended(t, { approving: { tellsResults: false } })
  const events = await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: [answer(ID, 'paid')] }))
  t.strictSame(events.slice(-2), [
    { ...RESULT, messageId: `agui-resume-${ID}`, content: 'paid' },
    { type: 'RUN_FINISHED', threadId: 'thread', runId: 'two', outcome: { type: 'success' } }
  ])
  t.equal(results(events).length, 1)
})

t.test('a client that has the result in its transcript already is not told it again', async (t) => {
  for (const tellsResults of [true, false]) {
    const { server, agent } = await suspended(t, { approving: { tellsResults } })
    const messages = [...ASKED, { id: 'kit', role: 'tool', toolCallId: 'u1-1', content: '"paid"' }]
    const events = await eventsOf(await server.run({ messages, resume: [answer(ID, 'paid')] }))
    t.match(events[0], { input: { messages } })
    t.strictSame(results(events), [])
    t.match(agent.inputs[1]?.messages, [{ id: 'u1' }, { id: 'reply-u1', content: [{ state: 'finished' }] }, { id: `agui-resume-${ID}`, content: [{ output: [{ text: 'paid' }] }] }])
    t.equal(agent.inputs[1]?.messages.length, 3)
  }
})

t.test('without resume, tool messages answer where they answer all of it', async (t) => {
  const both = 'wire {"sum":5}\nwire {"sum":6}'
  const agent = approving([wire])
  const server = await serveApp(t, { agent })
  await eventsOf(await server.run({ messages: [{ ...USER, content: both }] }))
  const one = { id: 't1', role: 'tool', toolCallId: 'u1-1', content: 'paid' }
  const [, error] = await eventsOf(await server.run({ runId: 'two', messages: [...ASKED, one] }), { ids: false })
  t.match(error, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: /^The thread has unresolved interrupts/ })
  const image = { type: 'image', source: { type: 'url', value: 'https://example.org/a.png' } }
  const two = { id: 't2', role: 'tool', toolCallId: 'u1-2', content: [{ type: 'text', text: 'no' }, image], error: 'no funds' }
  const events = await eventsOf(await server.run({ runId: 'two', messages: [...ASKED, one, two] }))
  t.strictSame(results(events), [])
  t.match(events.at(-1), { outcome: { type: 'success' } })
  t.match(agent.inputs[1]?.resume, [
    { toolCallId: 'u1-1', output: [{ type: 'text', text: 'paid' }], state: 'success' },
    { toolCallId: 'u1-2', output: [{ type: 'text', text: 'no' }, { type: 'image' }], state: 'error' }
  ])
})

t.test('a tool may ask in its own words, with its own schema, and goes on with the answer', async (t) => {
  const replyId = 'r1'
  const ask: Tool = {
    name: 'wire',
    execute: async (_input, { resume }) => {
      const [decision] = resume
      if (decision?.kind === 'input') return `code ${JSON.stringify(decision.payload ?? decision.status)}`
      throw new ToolSuspended('', [{ kind: 'input', replyId, request: { id: 'code', reason: 'acme:code', message: 'Code?', toolCallId: 'u1-1', responseSchema: { type: 'string' } } }])
    }
  }
  for (const [entry, content] of [[answer('r1:code', 'abc'), 'code "abc"'], [answer('r1:code', 'abc', 'cancelled'), 'code "cancelled"']] as const) {
    const agent = approving([ask])
    const server = await serveApp(t, {
      agent: {
        ...agent,
        // Runs the suspended call again, as an agent does that keeps its own conversation.
        stream: async function * (input, context) {
          if (input.resume === undefined) return yield * agent.stream(input, context)
          const output = await ask.execute?.({}, { toolCallId: 'u1-1', signal: context.signal, runtime: context, resume: input.resume }) as string
          yield { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'u1-1', delta: output }
          yield { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'u1-1', state: 'success' }
        }
      }
    })
    const asking = await eventsOf(await server.run({ messages: [USER] }))
    t.match(asking.at(-1), { outcome: { interrupts: [{ id: 'r1:code', reason: 'acme:code', message: 'Code?', toolCallId: 'u1-1', responseSchema: { type: 'string' } }] } })
    const [, wrong] = await eventsOf(await server.run({ runId: 'two', resume: [answer('r1:code', 7)] }), { ids: false })
    t.match(wrong, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
    t.match(results(await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: [entry] }))), [{ toolCallId: 'u1-1', content }])
  }
})

t.test('a call whose id the thread has used before is answered under the id its client knows', async (t) => {
  const asking: readonly AgentEventInit[] = [
    { type: 'TOOL_CALL_START', replyId: 'r', toolCallId: 'c', toolCallName: 'wire' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'wire', input: {} }] }
  ]
  const server = await serveApp(t, {
    agent: {
      name: 'forgetful',
      capabilities: { resume: true },
      stream: async function * ({ resume }) {
        if (resume === undefined) return yield * asking
        // Tells its call once more.
        yield * asking.slice(0, 2)
        yield { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'c', delta: 'done' }
        yield { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'c', state: 'success' }
      }
    }
  })
  const earlier = [USER, { id: 'r', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'wire', arguments: '{}' } }] }, { id: 'act:c', role: 'tool', toolCallId: 'c', content: 'old' }]
  const asked = await eventsOf(await server.run({ messages: earlier }))
  t.match(asked.find(({ type }) => type === 'TOOL_CALL_START'), { toolCallId: 'c:run' })
  t.match(asked.at(-1), { outcome: { interrupts: [{ id: 'r:c', toolCallId: 'c:run' }] } })
  const events = await eventsOf(await server.run({ runId: 'two', messages: [], resume: [answer('r:c', 'x')] }))
  t.strictSame(events.slice(1).map(({ type }) => type), ['TOOL_CALL_RESULT', 'RUN_FINISHED'])
  t.match(results(events), [{ toolCallId: 'c:run', content: 'done', messageId: 'act:c:two' }])
})

t.test('what waits again is neither told nor given up', async (t) => {
  const pause: readonly AgentEventInit[] = [{ type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'wire', input: {} }] }]
  const server = await serveApp(t, { agent: { ...scripted(pause), capabilities: { resume: true } } })
  for (const [runId, resume] of [['one', undefined], ['two', [answer('r:c', 'x')]], ['three', [answer('r:c', 'y')]]] as const) {
    const events = await eventsOf(await server.run({ runId, resume }))
    t.strictSame(results(events), [], runId)
    t.match(events.at(-1), { outcome: { type: 'interrupt', interrupts: [{ id: 'r:c' }] } }, runId)
  }
})
