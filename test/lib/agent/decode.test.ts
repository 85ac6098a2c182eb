import { readFileSync } from 'node:fs'
import t from 'tap'
import { type AgentEvent, AgentEvent as AgentEventSchema, decodeBlocks, decodeEvent, decodeMessage, encodeEvent, Normaliser } from '../../../lib/agent/index.ts'
import { Value } from '@sinclair/typebox/value'

// Written by AgentScope Java 2.x with Jackson: one event a line, the key `type` twice, nulls in nested blocks.
const javaEvents = readFileSync(new URL('../../fixtures/java-agent-events.jsonl', import.meta.url), 'utf8').trim().split('\n')

t.test('every event that Java writes is read, and written again for it with one `type`', async (t) => {
  for (const line of javaEvents) {
    const event = decodeEvent(line)
    t.ok(event, line)
    if (event === undefined) continue
    const json = encodeEvent(event as AgentEvent)
    t.notOk(json.includes(':null'), 'no null is written')
    t.strictSame(decodeEvent(json), event, 'a round trip changes nothing')
    t.strictSame(withoutNulls(JSON.parse(line)), JSON.parse(json), 'nothing but nulls is lost')
  }
})

t.test('a Java stream passes the normaliser', async (t) => {
  const events: AgentEvent[] = []
  const normaliser = new Normaliser({ agentName: 'a', sessionId: 's' })
  const emit = (event: AgentEvent): void => { events.push(event) }
  for (const line of javaEvents) normaliser.push(JSON.parse(line), emit)
  normaliser.end({ kind: 'returned' }, emit)
  t.ok(events.every((event) => Value.Check(AgentEventSchema, event)))
  const types = new Set(events.map(({ type }) => type))
  // The sample asks twice for one call: the second request says nothing new.
  t.strictSame(javaEvents.map((line) => (JSON.parse(line) as AgentEvent).type).filter((type) => !types.has(type)), ['REQUIRE_EXTERNAL_EXECUTION'])
})

t.test('the last of two keys counts, unknown members stay, nulls and wrong optional members go', async (t) => {
  t.strictSame(decodeEvent('{"type":"X","id":"e","type":"TEXT_BLOCK_DELTA","delta":"a","blockId":null,"metadata":5,"later":{"x":null}}'),
    { type: 'TEXT_BLOCK_DELTA', id: 'e', delta: 'a', later: { x: null } })
  t.strictSame(decodeEvent({ type: 'TOOL_CALL_START', toolCallId: 7, toolCallName: [], executor: 'CLIENT' }), { type: 'TOOL_CALL_START', toolCallId: '7', executor: 'client' })
})

t.test('deltas need no ids, calls do', async (t) => {
  t.strictSame(decodeEvent({ type: 'THINKING_BLOCK_DELTA', delta: 'a' }), { type: 'THINKING_BLOCK_DELTA', delta: 'a' })
  t.equal(decodeEvent({ type: 'TOOL_CALL_DELTA', delta: 'a' }), undefined)
})

t.test('roles and states may be in any case', async (t) => {
  t.match(decodeEvent({ type: 'AGENT_RESULT', result: { id: 'm', role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'n', input: {}, state: 'ASKING' }] } }), { result: { role: 'ASSISTANT', content: [{ state: 'asking' }] } })
  t.match(decodeEvent({ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'SUCCESS' }), { state: 'success' })
  t.match(decodeEvent({ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 5 }), { state: 'error' })
  t.match(decodeEvent({ type: 'TOOL_RESULT_END', toolCallId: 'c' }), { state: 'success' })
})

t.test('what is no event is undefined', async (t) => {
  const cyclic: Record<string, unknown> = { type: 'CUSTOM', name: 'x' }
  cyclic.value = cyclic
  for (const value of ['', 'x', '5', '[]', 'null', null, undefined, 5, {}, { type: 'NOPE' }, { type: 'CUSTOM', name: 'x', value: [] }, { type: 'AGENT_RESULT' }, { type: 'HINT_BLOCK' }, cyclic]) {
    t.equal(decodeEvent(value), undefined)
  }
})

t.test('a CUSTOM without a value has an empty one', async (t) => {
  t.strictSame(decodeEvent({ type: 'CUSTOM', name: 'x', value: null }), { type: 'CUSTOM', name: 'x', value: {} })
})

t.test('messages are read from what clients send', async (t) => {
  t.strictSame(decodeMessage({ id: 'm', role: 'user', content: 'hi', name: null, usage: { inputTokens: 1, outputTokens: 2, time: null }, metadata: null, timestamp: 5 }),
    { id: 'm', role: 'USER', content: [{ type: 'text', text: 'hi' }], usage: { inputTokens: 1, outputTokens: 2 } })
  t.match(decodeMessage({ role: 'alien', content: null, usage: { inputTokens: 'x' } }), { id: /^[0-9a-f]{32}$/, role: 'ASSISTANT', content: [] })
  t.equal(decodeMessage([]), undefined)
})

t.test('blocks are read tolerantly, and what is none is dropped', async (t) => {
  t.strictSame(decodeBlocks([
    null, 5, { type: 'alien' }, { type: 'text', text: null }, { type: 'text', text: 'a', extra: null },
    { type: 'image', source: { type: 'url', url: 'http://x/', mime_type: null }, minPixels: 4 }, { type: 'data', source: { type: 'base64', media_type: 'a/b', data: 'QQ==' }, name: null },
    { type: 'tool_use', id: 'a', name: 'n', input: '{"x":1}', metadata: 5 }, { type: 'tool_use', id: 'b', name: 'n', input: null, content: '{"y":', state: null }, { type: 'tool_use', id: 'c', name: 'n', content: 5 },
    { type: 'tool_result', id: 'a', output: 'text', metadata: 7 }, { type: 'tool_result', id: 'b', output: [{ type: 'text', text: 'x' }, 5], state: 'DENIED' }
  ]), [
    { type: 'text', text: 'a' },
    { type: 'image', source: { type: 'url', url: 'http://x/' }, minPixels: 4 }, { type: 'data', source: { type: 'base64', media_type: 'a/b', data: 'QQ==' } },
    { type: 'tool_use', id: 'a', name: 'n', input: { x: 1 }, content: '{"x":1}' }, { type: 'tool_use', id: 'b', name: 'n', input: {}, content: '{"y":' }, { type: 'tool_use', id: 'c', name: 'n', input: {} },
    { type: 'tool_result', id: 'a', output: [{ type: 'text', text: 'text' }], state: 'success' }, { type: 'tool_result', id: 'b', output: [{ type: 'text', text: 'x' }], state: 'denied' }
  ])
  t.strictSame(decodeBlocks('text'), [])
})

t.test('encoding is strict', async (t) => {
  const right = { type: 'TEXT_BLOCK_DELTA', id: 'e', createdAt: '2026-01-01T00:00:00Z', delta: 'a' } as const
  t.equal(encodeEvent(right), '{"type":"TEXT_BLOCK_DELTA","id":"e","createdAt":"2026-01-01T00:00:00Z","delta":"a"}')
  for (const wrong of [{ ...right, delta: 5 }, { ...right, id: undefined }, { type: right.type, id: 'e', delta: 'a' }, { ...right, blockId: null }, { ...right, type: 'NOPE' }]) {
    t.throws(() => encodeEvent(wrong as unknown as AgentEvent), TypeError)
  }
})

/** Removes null members at any depth, and Java's empty metadata stays. */
function withoutNulls (value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, member: unknown) => member === null ? undefined : member))
}
