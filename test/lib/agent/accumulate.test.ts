import t from 'tap'
import { accumulate, type AgentEventInit, pendingOf, textOf, usageOf } from '../../../lib/agent/index.ts'

const usage = (inputTokens: number, outputTokens: number, more: object = {}): { inputTokens: number, outputTokens: number } => ({ inputTokens, outputTokens, ...more })

t.test('a message has everything the root said, in the order in which it began', async (t) => {
  const message = accumulate([
    { type: 'AGENT_START', replyId: 'reply', name: 'kit' },
    { type: 'THINKING_BLOCK_START', blockId: 'a' }, { type: 'TEXT_BLOCK_START', blockId: 'b' }, { type: 'TEXT_BLOCK_START', blockId: 'empty' },
    { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'Hello' }, { type: 'THINKING_BLOCK_DELTA', blockId: 'a', delta: 'hm' }, { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: ' you' },
    { type: 'THINKING_BLOCK_END', blockId: 'a', metadata: { signature: 's' } },
    { type: 'DATA_BLOCK_START', blockId: 'd', mediaType: 'image/png', name: 'cat.png' }, { type: 'DATA_BLOCK_DELTA', blockId: 'd', delta: 'QUJ' }, { type: 'DATA_BLOCK_DELTA', blockId: 'd', delta: 'D' },
    { type: 'DATA_BLOCK_START', blockId: 'u', url: 'http://x/cat.png' }, { type: 'DATA_BLOCK_START', blockId: 'v', url: 'http://x/', mediaType: 'a/b' }, { type: 'DATA_BLOCK_START', blockId: 'w' },
    { type: 'HINT_BLOCK', blockId: 'h', hint: 'note', hintSource: 'inbox' }, { type: 'HINT_BLOCK', blockId: 'i', hint: 'note' },
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'add' }, { type: 'TOOL_CALL_DELTA', toolCallId: 'c', delta: '{"a":' },
    { type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta: 'a child', source: 'kid' }, { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'k', delta: 'x', source: 'kid' }, { type: 'HINT_BLOCK', hint: 'x', source: 'kid' },
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c', delta: 'no' }, { type: 'MODEL_CALL_END', replyId: 'm', usage: usage(1, 2) }, { type: 'MODEL_CALL_END', replyId: 'n', usage: usage(7, 7), source: 'kid' }
  ])
  t.match(message, { id: 'reply', role: 'ASSISTANT', metadata: {}, timestamp: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/, usage: usage(1, 2) })
  t.strictSame(message.content, [
    { type: 'thinking', thinking: 'hm', metadata: { signature: 's' } }, { type: 'text', text: 'Hello you' },
    { type: 'data', id: 'd', name: 'cat.png', source: { type: 'base64', media_type: 'image/png', data: 'QUJD' } },
    { type: 'data', id: 'u', source: { type: 'url', url: 'http://x/cat.png' } }, { type: 'data', id: 'v', source: { type: 'url', url: 'http://x/', mime_type: 'a/b' } },
    { type: 'data', id: 'w', source: { type: 'base64', media_type: 'application/octet-stream', data: '' } },
    { type: 'hint', id: 'h', hint: 'note', source: 'inbox' }, { type: 'hint', id: 'i', hint: 'note' },
    { type: 'tool_use', id: 'c', name: 'add', input: {}, content: '{"a":', metadata: {}, state: 'pending' },
    { type: 'tool_result', id: 'c', name: 'add', output: [{ type: 'text', text: 'no' }], metadata: {}, state: 'running' }
  ])
})

t.test('the result that an agent gives is its message', async (t) => {
  const result = { id: 'm', role: 'ASSISTANT', content: [{ type: 'text', text: 'final' }], metadata: { k: 1 } } as const
  const message = accumulate([{ type: 'TEXT_BLOCK_DELTA', delta: 'streamed' }, { type: 'AGENT_RESULT', result: { ...result, content: [...result.content] } }, { type: 'AGENT_END' }])
  t.strictSame(message, result)
})

t.test('text is what the text blocks say, line by line', async (t) => {
  t.equal(textOf([{ type: 'text', text: 'a' }, { type: 'thinking', thinking: 'b' }, { type: 'text', text: 'c' }]), 'a\nc')
  t.equal(textOf({ id: 'm', role: 'USER', content: [{ type: 'text', text: 'a' }] }), 'a')
})

t.test('tokens of root and children are added up, parts and time with them', async (t) => {
  t.equal(usageOf([]), undefined)
  t.strictSame(usageOf([
    { type: 'MODEL_CALL_END', replyId: 'a', usage: usage(1, 2, { cachedTokens: 1, time: 0.5 }) }, { type: 'MODEL_CALL_END', replyId: 'b', usage: usage(10, 20, { totalTokens: 31, reasoningTokens: 4 }), source: 'kid' },
    { type: 'MODEL_CALL_START', replyId: 'c' }, { type: 'MODEL_CALL_END', replyId: 'c' }, { type: 'MODEL_CALL_END', replyId: 'd', usage: usage(100, 200, { cacheCreationTokens: 9, time: 0.25 }) }
  ]), { inputTokens: 111, outputTokens: 222, cachedTokens: 1, cacheCreationTokens: 9, reasoningTokens: 4, totalTokens: 334, time: 0.75 })
})

t.test('a total beside the calls it sums up is not counted again, by itself it counts', async (t) => {
  const total: AgentEventInit[] = [{ type: 'CUSTOM', name: 'usage', value: usage(3, 4) }, { type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [], usage: usage(3, 4) } }]
  t.strictSame(usageOf([{ type: 'MODEL_CALL_END', replyId: 'a', usage: usage(1, 1) }, { type: 'MODEL_CALL_END', replyId: 'b', usage: usage(2, 3) }, ...total]), { ...usage(3, 4), totalTokens: 7 })
  t.strictSame(usageOf(total), { ...usage(3, 4), totalTokens: 7 })
  t.strictSame(usageOf(total.map((event) => ({ ...event, source: 'kid' }))), { ...usage(3, 4), totalTokens: 7 })
  t.equal(usageOf([{ type: 'CUSTOM', name: 'usage', value: { inputTokens: 'many' } }]), undefined)
})

t.test('events told twice count once', async (t) => {
  const end: AgentEventInit = { type: 'MODEL_CALL_END', replyId: 'a', usage: usage(1, 1) }
  t.strictSame(usageOf([{ type: 'MODEL_CALL_START', replyId: 'a' }, end, end]), { ...usage(1, 1), totalTokens: 2 })
  t.strictSame(usageOf([{ type: 'MODEL_CALL_END', usage: usage(1, 1) }, { type: 'MODEL_CALL_END', usage: usage(1, 1) }]), { ...usage(2, 2), totalTokens: 4 }, 'without names they are two calls')
})

t.test('pending is what the root still waits for', async (t) => {
  const toolCall = { type: 'tool_use', id: 'c', name: 'n', input: { a: 1 } } as const
  const events: AgentEventInit[] = [{ type: 'AGENT_START', replyId: 'r' }, { type: 'REQUIRE_USER_CONFIRM', replyId: 's', toolCalls: [{ ...toolCall }] }, { type: 'AGENT_END' }]
  t.strictSame(pendingOf(events), [{ kind: 'confirm', replyId: 's', toolCall: { ...toolCall, content: '{"a":1}', metadata: {}, state: 'asking' } }])
  t.strictSame(pendingOf([...events.slice(0, 2), { type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'success' }]), [])
})
