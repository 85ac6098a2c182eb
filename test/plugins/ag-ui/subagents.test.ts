import t from 'tap'
import { type AgentEventInit, type Msg } from '../../../lib/agent/index.ts'
import { between, call, message, project, result, stamp, terminal, text } from './project.ts'

const source = 'main/researcher'
const child = (events: readonly AgentEventInit[]): AgentEventInit[] => events.map((event) => ({ ...event, source }) as AgentEventInit)
const custom = (name: string, value: object): unknown => ({ type: 'CUSTOM', name: `subagent.${name}`, value: { source, ...value } })
const raw = (event: AgentEventInit): unknown => ({ type: 'RAW', event: stamp(event), source })
const toolUse = { type: 'tool_use' as const, id: 'c', name: 'f', input: {} }

t.test('a child\'s events are told in a namespace of their own', async (t) => {
  const others = child([{ type: 'TEXT_BLOCK_START', replyId: 'r', blockId: 'b' }, { type: 'TOOL_CALL_DELTA', toolCallId: 'c', delta: '{}' }, { type: 'MODEL_CALL_START' }])
  t.strictSame(between([
    ...child([
      { type: 'AGENT_START', name: 'researcher' }, { type: 'AGENT_START' }, text('r', 'found'), { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'search' },
      { type: 'TOOL_CALL_END', toolCallId: 'c' }, { type: 'TOOL_RESULT_END', toolCallId: 'c', toolCallName: 'search', state: 'success' },
      { type: 'REQUIRE_USER_CONFIRM', toolCalls: [toolUse, toolUse] }, { type: 'AGENT_END' }
    ]),
    ...others
  ]), [
    custom('lifecycle', { type: 'AGENT_START', name: 'researcher' }),
    custom('lifecycle', { type: 'AGENT_START', name: '' }),
    custom('text', { type: 'TEXT_BLOCK_DELTA', delta: 'found' }),
    custom('tool_call', { type: 'TOOL_CALL_START', toolCallId: 'c', toolName: 'search' }),
    custom('tool_call', { type: 'TOOL_CALL_END', toolCallId: 'c', toolName: '' }),
    custom('tool_result', { type: 'TOOL_RESULT_END', toolCallId: 'c', toolName: 'search', state: 'success' }),
    custom('require_confirm', { type: 'REQUIRE_USER_CONFIRM', toolCallCount: 2 }),
    custom('lifecycle', { type: 'AGENT_END' }),
    ...others.map(raw)
  ])
  t.strictSame(between(others, { rawFallback: false }), [])
})

t.test('a child\'s internal tools are nobody\'s to see', async (t) => {
  t.strictSame(between(child([
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: '__plan' }, { type: 'TOOL_CALL_DELTA', toolCallId: 'c', toolCallName: '__plan', delta: '{}' }
  ])), [])
})

t.test('a child\'s thinking', async (t) => {
  const thought = child([{ type: 'THINKING_BLOCK_DELTA', delta: 'hm' }])
  const own: Msg = { id: 'm', role: 'ASSISTANT', content: [{ type: 'thinking', thinking: 'hm' }, { type: 'text', text: 'x' }] }
  const ended = child([{ type: 'AGENT_RESULT', result: own }])
  const told = custom('thinking', { type: 'THINKING_BLOCK_DELTA', delta: 'hm' })

  t.test('follows enableReasoning, and its result does not give it away', async (t) => {
    t.strictSame(between(thought), [])
    t.strictSame(between(thought, { enableReasoning: true }), [told])
    t.match(between(ended), [{ type: 'RAW', event: { result: { content: [{ type: 'text', text: 'x' }] } } }])
    t.match(between(ended, { enableReasoning: true }), [{ type: 'RAW', event: { result: own } }])
    t.strictSame(between(ended, { rawFallback: false }), [])
  })

  t.test('has a switch of its own', async (t) => {
    t.strictSame(between(thought, { subagentThinking: true }), [told])
    t.strictSame(between(thought, { enableReasoning: true, subagentThinking: false }), [])
  })
})

t.test('the parent is not disturbed by its children', async (t) => {
  const types = between([text('r', 'a'), ...child([text('r', 'x'), { type: 'TEXT_BLOCK_END', replyId: 'r', blockId: 'text' }]), text('r', 'b')], { rawFallback: false }).map(({ type }) => type)
  t.strictSame(types, ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'CUSTOM', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'])
})

t.test('a blank source is the parent\'s own', async (t) => {
  t.match(between([{ ...text('r', 'a'), source: ' ' } as AgentEventInit])[0], { type: 'TEXT_MESSAGE_START' })
})

t.test('flattened, children speak as the parent does, without starting or ending the run', async (t) => {
  const events = child([
    { type: 'AGENT_START', name: 'researcher' }, text('r', 'found'), ...call('r', 'c', 'f'), ...result('act', 'c', 'x'), { type: 'THINKING_BLOCK_DELTA', replyId: 'r', blockId: 'b', delta: 'hm' },
    { type: 'AGENT_RESULT', result: message }, { type: 'AGENT_END' }
  ])
  const expected = [
    { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'found' },
    { type: 'TEXT_MESSAGE_END', messageId: 'r' },
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'TOOL_CALL_RESULT', messageId: 'act:c', toolCallId: 'c', content: 'x', role: 'tool' }
  ]
  t.strictSame(between(events, { subagentEvents: 'flatten' }), expected)
  t.strictSame(between(events, { emitSubagentEventsAsNative: true }), expected)
  t.match(between(events, { subagentEvents: 'flatten', subagentThinking: true }).map(({ type }) => type).slice(-3), ['REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END'])
})

t.test('flattened, the same ids of parent and child stay apart', async (t) => {
  t.strictSame(between([text('r', 'mine'), ...child([text('r', 'theirs')]), ...call('r', 'c', 'f'), ...child(call('r', 'c', 'g'))], { subagentEvents: 'flatten' }).map((event) => [event.type, 'messageId' in event ? event.messageId : 'toolCallId' in event ? event.toolCallId : '']), [
    ['TEXT_MESSAGE_START', 'r'], ['TEXT_MESSAGE_CONTENT', 'r'], ['TEXT_MESSAGE_START', 'r:2'], ['TEXT_MESSAGE_CONTENT', 'r:2'],
    ['TEXT_MESSAGE_END', 'r'], ['TOOL_CALL_START', 'c'], ['TOOL_CALL_ARGS', 'c'], ['TOOL_CALL_END', 'c'],
    ['TEXT_MESSAGE_END', 'r:2'], ['TOOL_CALL_START', 'c:2'], ['TOOL_CALL_ARGS', 'c:2'], ['TOOL_CALL_END', 'c:2']
  ])
})

t.test('token usage', async (t) => {
  const first = { type: 'MODEL_CALL_END', replyId: 'rep-1', model: 'm', usage: { inputTokens: 100, outputTokens: 26, time: 2.4 } } as const
  const second = { type: 'MODEL_CALL_END', replyId: 'rep-2', model: 'n', usage: { inputTokens: 20, outputTokens: 5, cachedTokens: 8, time: 0.7, reasoningTokens: 2, toolUsePromptTokens: 1.4 } } as const

  t.test('is not told unless asked for', async (t) => {
    t.strictSame(between([first]), [])
  })

  t.test('is told after each model call that reports any, with the run\'s sum', async (t) => {
    t.strictSame(between([first, { type: 'MODEL_CALL_END', replyId: 'x' }, second], { emitTokenUsage: true }), [
      {
        type: 'CUSTOM',
        name: 'token_usage',
        value: {
          delta: { inputTokens: 100, outputTokens: 26, cachedTokens: 0, totalTokens: 126, time: 2.4 },
          cumulative: { inputTokens: 100, outputTokens: 26, cachedTokens: 0, totalTokens: 126, time: 2.4 },
          modelCall: { replyId: 'rep-1' }
        }
      },
      {
        type: 'CUSTOM',
        name: 'token_usage',
        value: {
          delta: { inputTokens: 20, outputTokens: 5, cachedTokens: 8, totalTokens: 25, time: 0.7, reasoningTokens: 2, toolUsePromptTokens: 1 },
          cumulative: { inputTokens: 120, outputTokens: 31, cachedTokens: 8, totalTokens: 151, time: 3.0999999999999996, reasoningTokens: 2, toolUsePromptTokens: 1 },
          modelCall: { replyId: 'rep-2' }
        }
      }
    ])
  })

  t.test('of a run is summed by model, its children\'s with it', async (t) => {
    const events = [first, second, ...child([{ ...first, usage: { inputTokens: 1, outputTokens: 1 } }]), { type: 'MODEL_CALL_END', usage: { inputTokens: -1, outputTokens: 2.6 } } as const]
    t.match(terminal({ kind: 'completed', reason: 'MODEL_STOP', message }, {}, {}, events), {
      usage: [
        { model: 'm', inputTokens: 101, outputTokens: 27, totalTokens: 128 },
        { model: 'n', inputTokens: 20, outputTokens: 5, totalTokens: 25, reasoningTokens: 2, cachedInputTokens: 8 },
        { inputTokens: 0, outputTokens: 3, totalTokens: 3 }
      ]
    })
    t.notHas(project([]).at(-1), 'usage')
  })
})
