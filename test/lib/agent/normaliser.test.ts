import t from 'tap'
import { type AgentEvent, Normaliser } from '../../../lib/agent/index.ts'
import { lines, normalise } from '../../helpers/normalise.ts'

const text = (type: string, replyId?: string, blockId?: string, delta?: string): Record<string, unknown> => ({
  type: `TEXT_BLOCK_${type}`, ...replyId && { replyId }, ...blockId && { blockId }, ...delta !== undefined && { delta }
})

t.test('an agent that yields nothing has a start, an empty result and an end', async (t) => {
  const { events, repairs, normaliser } = normalise([])
  t.strictSame(lines(events), ['AGENT_START', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.match(events[0], { sessionId: 'session', name: 'agent', role: 'assistant' })
  t.match(events[1], { result: { name: 'agent', role: 'ASSISTANT', content: [], metadata: { agentscope_generate_reason: 'MODEL_STOP' } } })
  t.strictSame(repairs, ['inserted missing-start AGENT_START'])
  t.equal(normaliser.reason, 'MODEL_STOP')
})

t.test('an own start is kept and filled, a second one dropped', async (t) => {
  const { events, repairs } = normalise([
    { type: 'AGENT_START', replyId: 'r', name: 'own', id: 'e1', createdAt: '2026-01-01T00:00:00.123456789Z', extra: 1 }, { type: 'AGENT_START', replyId: 'other' }
  ])
  t.strictSame(events[0], { type: 'AGENT_START', name: 'own', extra: 1, sessionId: 'session', role: 'assistant' })
  t.strictSame(repairs, ['dropped duplicate AGENT_START'])
})

t.test('ids and times that an agent gives are kept, others made', async (t) => {
  const { raw } = normalise([
    { type: 'TEXT_BLOCK_DELTA', delta: 'a', id: 'mine', createdAt: '2026-01-01T00:00:00Z' }, { type: 'TEXT_BLOCK_DELTA', delta: 'b', id: 5, createdAt: 'yesterday' }
  ])
  const [first, second] = raw.filter(({ type }) => type === 'TEXT_BLOCK_DELTA')
  t.match(first, { id: 'mine', createdAt: '2026-01-01T00:00:00Z' })
  t.match(second?.id, /^[0-9a-f]{32}$/)
  t.match(second?.createdAt, /^20\d\d-/)
  t.equal(new Set(raw.map(({ id }) => id)).size, raw.length)
})

t.test('a delta opens its block, an end without a start is dropped, an open block is closed before its key is used again', async (t) => {
  const { events, repairs } = normalise([
    text('END', 'r', 'b'), text('DELTA', 'r', 'b', 'one'), text('START', 'r', 'b'), text('DELTA', 'r', 'b', 'two'), text('END', 'r', 'b'), text('END', 'r', 'b')
  ])
  t.strictSame(lines(events).slice(1, -2), [
    'TEXT_BLOCK_START r/b', 'TEXT_BLOCK_DELTA r/b "one"', 'TEXT_BLOCK_END r/b',
    'TEXT_BLOCK_START r/b-2', 'TEXT_BLOCK_DELTA r/b-2 "two"', 'TEXT_BLOCK_END r/b-2'
  ])
  t.strictSame(repairs, [
    'dropped not-open TEXT_BLOCK_END b', 'inserted missing-start AGENT_START', 'inserted missing-start TEXT_BLOCK_START b',
    'closed missing-end TEXT_BLOCK_END b', 'dropped not-open TEXT_BLOCK_END b'
  ])
})

t.test('block ids are unique within a reply, over kinds and over constants used again', async (t) => {
  const { events } = normalise([
    { type: 'THINKING_BLOCK_DELTA', replyId: 'r', blockId: '0', delta: 'hm' }, text('DELTA', 'r', '0', 'x'), { type: 'HINT_BLOCK', replyId: 'r', blockId: '0', hint: 'h', hintSource: 'inbox' },
    text('END', 'r', '0'), text('START', 'r', '0'), text('END', 'r', '0'), text('START', 'q', '0'), { type: 'DATA_BLOCK_START', replyId: 'r', blockId: '' }
  ])
  t.strictSame(events.filter(({ type, blockId }) => blockId && type !== 'TEXT_BLOCK_END').map(({ type, replyId, blockId }) => `${String(type)} ${String(replyId)} ${String(blockId)}`), [
    'THINKING_BLOCK_START r 0', 'THINKING_BLOCK_DELTA r 0', 'TEXT_BLOCK_START r 0-2', 'TEXT_BLOCK_DELTA r 0-2', 'HINT_BLOCK r 0-3',
    'TEXT_BLOCK_START r 0-4', 'TEXT_BLOCK_START q 0', 'DATA_BLOCK_START r data', 'DATA_BLOCK_END r data', 'THINKING_BLOCK_END r 0'
  ])
})

t.test('what an event leaves out is taken from the block that was opened last', async (t) => {
  const { events } = normalise([
    text('START', 'r1', 'a'), text('START', 'r2', 'b'), text('DELTA', 'r1', '', 'in a'), text('DELTA', '', 'a', 'in a too'), text('DELTA', '', '', 'in b'), text('END'), text('END', 'r1')
  ])
  t.strictSame(lines(events).slice(3, -2), [
    'TEXT_BLOCK_DELTA r1/a "in a"', 'TEXT_BLOCK_DELTA r1/a "in a too"', 'TEXT_BLOCK_DELTA r2/b "in b"', 'TEXT_BLOCK_END r2/b', 'TEXT_BLOCK_END r1/a'
  ])
})

t.test('numbers are ids too', async (t) => {
  const { events } = normalise([{ type: 'TEXT_BLOCK_START', replyId: 1, blockId: 2 }, { type: 'TEXT_BLOCK_DELTA', replyId: 1, blockId: 2, delta: 'x' }])
  t.strictSame(lines(events).slice(1, 3), ['TEXT_BLOCK_START 1/2', 'TEXT_BLOCK_DELTA 1/2 "x"'])
})

t.test('blocks may overlap, within a source and between sources', async (t) => {
  const { events, repairs } = normalise([
    { type: 'AGENT_START' }, text('START', 'r', 'a'), text('START', 'r', 'b'), { ...text('DELTA', 'k', 'a', 'child'), source: 'kid' }, text('DELTA', 'r', 'a', '1'), text('DELTA', 'r', 'b', '2'),
    { ...text('DELTA', 'k', 'a', 'ren'), source: 'kid' }, text('DELTA', 'r', 'a', '3'), text('END', 'r', 'a'), text('END', 'r', 'b')
  ])
  t.strictSame(lines(events), [
    'AGENT_START', 'TEXT_BLOCK_START r/a', 'TEXT_BLOCK_START r/b', 'kid: AGENT_START', 'kid: TEXT_BLOCK_START k/a', 'kid: TEXT_BLOCK_DELTA k/a "child"', 'TEXT_BLOCK_DELTA r/a "1"', 'TEXT_BLOCK_DELTA r/b "2"',
    'kid: TEXT_BLOCK_DELTA k/a "ren"', 'TEXT_BLOCK_DELTA r/a "3"', 'TEXT_BLOCK_END r/a', 'TEXT_BLOCK_END r/b', 'kid: TEXT_BLOCK_END k/a', 'kid: AGENT_END INTERRUPTED',
    'AGENT_RESULT', 'AGENT_END MODEL_STOP'
  ])
  t.strictSame(repairs, [
    'kid: inserted missing-start AGENT_START', 'kid: inserted missing-start TEXT_BLOCK_START a', 'kid: closed missing-end AGENT_END', 'kid: closed missing-end TEXT_BLOCK_END a'
  ])
})

for (const [end, tail] of [
  ['returned', ['AGENT_RESULT', 'AGENT_END MODEL_STOP']], ['interrupted', ['AGENT_RESULT', 'AGENT_END INTERRUPTED']], ['failed', []]
] as const) {
  t.test(`a stream that ${end} closes all that is open, innermost first`, async (t) => {
    const { events } = normalise([
      { type: 'AGENT_START' }, { type: 'MODEL_CALL_START', replyId: 'm' }, text('START', 'm', 'b'), { type: 'TOOL_RESULT_START', toolCallId: 'c', replyId: 't' },
      { type: 'THINKING_BLOCK_START', replyId: 'm' }, { type: 'TOOL_CALL_START', toolCallId: 'd', replyId: 'm', toolCallName: 'add' }, { type: 'MODEL_CALL_START', replyId: 'n' }
    ], end)
    const at = events.findIndex(({ type, replyId }) => type === 'MODEL_CALL_START' && replyId === 'n')
    t.strictSame(lines(events).slice(at + 1), [
      'MODEL_CALL_END n', 'TOOL_CALL_DELTA m/d "{}"', 'TOOL_CALL_END m/d', 'THINKING_BLOCK_END m/thinking', 'TOOL_RESULT_END t/c interrupted', 'TEXT_BLOCK_END m/b', 'MODEL_CALL_END m', ...tail
    ])
  })
}

t.test('a stream that fails before it started stays empty, and ends once', async (t) => {
  const { raw, normaliser } = normalise([], 'failed')
  normaliser.end({ kind: 'returned' }, () => t.fail('ended twice'))
  normaliser.push(text('DELTA', 'r', 'b', 'late'), () => t.fail('told after the end'))
  t.strictSame(raw, [])
})

t.test('a model call ends what its model was saying, with usage told once', async (t) => {
  const usage = { inputTokens: 3, outputTokens: 4 }
  const { events, normaliser, repairs } = normalise([
    { type: 'AGENT_START' }, { type: 'MODEL_CALL_START' }, text('DELTA', '', '', 'a'), { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c', delta: 'early' }, { type: 'MODEL_CALL_END', usage, model: 'm1' },
    { type: 'MODEL_CALL_END', replyId: 'x', usage }, { type: 'MODEL_CALL_END', replyId: 'x', usage }, { type: 'MODEL_CALL_END' },
    { type: 'MODEL_CALL_START', replyId: 'y' }, { type: 'MODEL_CALL_START', replyId: 'y' }, { type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'success' }
  ])
  const step = events[1]?.replyId
  t.ok(step)
  t.strictSame(lines(events).map((line) => line.replace(String(step), 'S')), [
    'AGENT_START', 'MODEL_CALL_START S', 'TEXT_BLOCK_START S/text', 'TEXT_BLOCK_DELTA S/text "a"', 'TOOL_CALL_START S/c', 'TOOL_CALL_DELTA S/c "{}"', 'TOOL_CALL_END S/c',
    'TOOL_RESULT_START S/c', 'TOOL_RESULT_TEXT_DELTA S/c "early"', 'TEXT_BLOCK_END S/text', 'MODEL_CALL_END S', 'MODEL_CALL_START x', 'MODEL_CALL_END x',
    'MODEL_CALL_START y', 'MODEL_CALL_END y', 'MODEL_CALL_START y', 'TOOL_RESULT_END S/c success', 'MODEL_CALL_END y', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'
  ])
  t.strictSame(normaliser.usage, { inputTokens: 6, outputTokens: 8, totalTokens: 14 })
  t.equal(repairs.filter((repair) => repair === 'dropped not-open MODEL_CALL_END').length, 2)
})

t.test('AGENT_RESULT and AGENT_END wait for the end: an agent that throws after them has failed', async (t) => {
  const result = { type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [{ type: 'text', text: 'done' }] } }
  const failed = normalise([text('START', 'r', 'b'), result, { type: 'AGENT_END' }], 'failed')
  t.strictSame(lines(failed.events), ['AGENT_START', 'TEXT_BLOCK_START r/b', 'TEXT_BLOCK_END r/b'])
  const { events, repairs } = normalise([result, text('DELTA', 'r', 'b', 'x'), { ...result, id: 'second' }, { type: 'AGENT_END', replyId: 'other', extra: true }, text('DELTA', 'r', 'b', 'late'), 5, { get type () { throw new Error('no') } }])
  t.strictSame(lines(events), ['AGENT_START', 'TEXT_BLOCK_START r/b', 'TEXT_BLOCK_DELTA r/b "x"', 'TEXT_BLOCK_END r/b', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.strictSame(repairs.filter((repair) => repair.startsWith('dropped')), ['dropped duplicate AGENT_RESULT', 'dropped after-end TEXT_BLOCK_DELTA', 'dropped after-end', 'dropped not-an-event'])
  t.match(events.at(-1), { extra: true })
})

t.test('the reasons of result and end agree, and are inferred when absent', async (t) => {
  const call = { type: 'tool_use', id: 'c', name: 'add', input: {} }
  const confirm = { type: 'REQUIRE_USER_CONFIRM', toolCalls: [call] }
  const external = { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [{ ...call, id: 'd' }] }
  const input = { type: 'REQUIRE_INPUT', requests: [{ id: 'q' }] }
  const result = (reason: unknown): object => ({ type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [], metadata: { agentscope_generate_reason: reason, kept: 1 } } })
  const reasonOf = (yielded: unknown[], end: 'returned' | 'interrupted' = 'returned'): unknown => normalise(yielded, end).normaliser.reason
  t.equal(reasonOf([confirm]), 'PERMISSION_ASKING')
  t.equal(reasonOf([input, external, confirm]), 'PERMISSION_ASKING')
  t.equal(reasonOf([external]), 'TOOL_SUSPENDED')
  t.equal(reasonOf([input]), 'TOOL_SUSPENDED')
  t.equal(reasonOf([confirm], 'interrupted'), 'INTERRUPTED')
  t.equal(reasonOf([{ type: 'AGENT_END', reason: 'TOOL_CALLS' }], 'interrupted'), 'TOOL_CALLS')
  t.equal(reasonOf([{ type: 'AGENT_END' }], 'interrupted'), 'INTERRUPTED')
  t.equal(reasonOf([{ type: 'EXCEED_MAX_ITERS', maxIters: 3, currentIter: 3 }]), 'MAX_ITERATIONS')
  t.equal(reasonOf([{ type: 'ALL_TOOLS_DENIED', deniedToolCalls: [] }]), 'ALL_TOOLS_DENIED')
  t.equal(reasonOf([{ type: 'REQUEST_STOP', generateReason: 'ACTING_STOP_REQUESTED' }, { type: 'REQUEST_STOP' }]), 'ACTING_STOP_REQUESTED')
  t.equal(reasonOf([{ type: 'AGENT_END', reason: 'because' }]), 'MODEL_STOP')
  t.equal(reasonOf([result('STRUCTURED_OUTPUT')]), 'STRUCTURED_OUTPUT')
  t.equal(reasonOf([result('odd'), confirm]), 'PERMISSION_ASKING')
  const { events } = normalise([result('STRUCTURED_OUTPUT'), { type: 'AGENT_END', reason: 'TOOL_CALLS' }])
  t.match(events.at(-2), { result: { metadata: { agentscope_generate_reason: 'TOOL_CALLS', kept: 1 } } })
})

t.test('a child may run again under its path, and an end of its own closes it', async (t) => {
  const kid = { source: 'team/kid' }
  const { events, repairs } = normalise([
    { type: 'AGENT_START' }, { ...kid, type: 'AGENT_END' }, { ...kid, type: 'AGENT_START', replyId: 'k1', sessionId: 's1' }, { ...kid, type: 'AGENT_START' }, { ...kid, ...text('DELTA', '', '', 'a') },
    { ...kid, type: 'AGENT_START', replyId: 'k2' }, { ...kid, ...text('START') }, { ...kid, type: 'AGENT_RESULT', result: { content: 'a' } }, { ...kid, type: 'AGENT_END', reason: 'MODEL_STOP' }, { ...kid, ...text('DELTA', '', '', 'b') }
  ])
  t.strictSame(events.filter(({ type }) => type === 'AGENT_START').map(({ name, sessionId }) => [name, sessionId]), [['agent', 'session'], ['kid', 's1'], ['kid', 'session'], ['kid', 'session']])
  t.strictSame(events.filter(({ source }) => source !== undefined).map(({ type }) => type), [
    'AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END', 'AGENT_END', 'AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END',
    'AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END', 'AGENT_END'
  ])
  t.strictSame(repairs.filter((repair) => repair.includes('AGENT_')), [
    'team/kid: dropped not-open AGENT_END', 'team/kid: dropped duplicate AGENT_START', 'team/kid: closed missing-end AGENT_END', 'team/kid: inserted missing-start AGENT_START', 'team/kid: closed missing-end AGENT_END'
  ])
})

t.test('what is no event is dropped, and nothing is thrown', async (t) => {
  const cyclic: Record<string, unknown> = { type: 'CUSTOM', name: 'x' }
  cyclic.value = { cyclic }
  const garbage = [null, undefined, 5, 'TEXT_BLOCK_DELTA', [], {}, { type: 'NOPE' }, { type: 'toString' }, { type: 5 }, cyclic, { get type () { throw new Error('no') } }, { type: 'CUSTOM', get value () { throw new Error('no') } },
    { type: 'CUSTOM', value: {} }, { type: 'CUSTOM', name: 'x', value: [1] }, { type: 'AGENT_RESULT', result: 5 }, { type: 'TEXT_BLOCK_DELTA', delta: {} }, { type: 'TEXT_BLOCK_DELTA', delta: null }, { type: 'TEXT_BLOCK_DELTA', delta: '' },
    { type: 'REQUIRE_INPUT', requests: [5, {}] }, { type: 'REQUIRE_USER_CONFIRM', toolCalls: 'x' }]
  const { events, repairs } = normalise(garbage)
  t.strictSame(lines(events), ['AGENT_START', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.strictSame(repairs.filter((repair) => repair.startsWith('dropped')), [
    'dropped not-an-event', 'dropped not-an-event', 'dropped not-an-event', 'dropped not-an-event', 'dropped not-an-event', 'dropped unknown-type', 'dropped unknown-type NOPE', 'dropped unknown-type toString', 'dropped unknown-type',
    'dropped not-an-event', 'dropped not-an-event', 'dropped not-an-event', 'dropped invalid CUSTOM', 'dropped invalid CUSTOM', 'dropped invalid AGENT_RESULT', 'dropped invalid TEXT_BLOCK_DELTA', 'dropped empty TEXT_BLOCK_DELTA', 'dropped empty TEXT_BLOCK_DELTA',
    'dropped empty REQUIRE_INPUT', 'dropped empty REQUIRE_USER_CONFIRM'
  ])
})

t.test('an event shares nothing with what the agent yielded, and carries no __proto__', async (t) => {
  const value = JSON.parse('{"list":[1],"__proto__":{"polluted":true}}') as { list: number[] }
  const { events } = normalise([{ type: 'CUSTOM', name: 'state_snapshot', value }, { type: 'TEXT_BLOCK_START', metadata: 5, extra: null, foreign: 'kept' }, { type: 'TEXT_BLOCK_DELTA', delta: 'x', metadata: { trace: 1 } }])
  value.list.push(2)
  t.strictSame(events[1], { type: 'CUSTOM', name: 'state_snapshot', value: { list: [1] } })
  t.strictSame(events[2], { type: 'TEXT_BLOCK_START', foreign: 'kept', blockId: 'text' })
  t.strictSame(events[3], { type: 'TEXT_BLOCK_DELTA', blockId: 'text', delta: 'x', metadata: { trace: 1 } })
})

t.test('an agent may reuse one event object', async (t) => {
  const events: AgentEvent[] = []
  const normaliser = new Normaliser({ agentName: 'a', sessionId: 's' })
  const event = { type: 'TEXT_BLOCK_DELTA', replyId: 'r', blockId: 'a', delta: '1' }
  for (const [blockId, delta] of [['a', '1'], ['a', '2'], ['b', '3'], ['a', '4']] as const) {
    Object.assign(event, { blockId, delta })
    normaliser.push(event, (event) => { events.push(event) })
  }
  t.strictSame(events.flatMap((event) => event.type === 'TEXT_BLOCK_DELTA' ? [[event.blockId, event.delta]] : []), [['a', '1'], ['a', '2'], ['b', '3'], ['a', '4']])
})

t.test('what emit throws is the caller\'s', async (t) => {
  const normaliser = new Normaliser({ agentName: 'a', sessionId: 's' })
  t.throws(() => normaliser.push(text('DELTA', 'r', 'b', 'x'), () => { throw new TypeError('mine') }), { message: 'mine' })
})

t.test('a split surrogate pair waits for its second half', async (t) => {
  for (const [first, second] of [['TEXT_BLOCK_DELTA', 'blockId'], ['THINKING_BLOCK_DELTA', 'blockId'], ['DATA_BLOCK_DELTA', 'blockId'], ['TOOL_CALL_DELTA', 'toolCallId'], ['TOOL_RESULT_TEXT_DELTA', 'toolCallId']] as const) {
    const delta = (text: string): object => ({ type: first, replyId: 'r', [second]: 'x', delta: text })
    const deltas = (...texts: string[]): unknown[] => normalise(texts.map(delta)).events.flatMap((event) => event.type === first && event.delta !== '{}' ? [event.delta] : [])
    t.strictSame(deltas('\ud83d', '\ude00!'), ['😀!'], `${first}, a half alone`)
    t.strictSame(deltas('a\ud83d', '\ude00', 'b'), ['a', '😀', 'b'], `${first}, a half behind text`)
    t.strictSame(deltas('x\ud83d'), ['x', '\ufffd'], `${first}, a half at the very end`)
    t.strictSame(deltas('\ud83d', '\ud83d', '\ude00'), ['\ufffd', '😀'], `${first}, two first halves`)
    t.strictSame(deltas('\ude00a', 'b\ud83dc'), ['\ufffda', 'b\ufffdc'], `${first}, lone halves`)
  }
})

t.test('a held half is told once before what follows it, and stands in the message', async (t) => {
  const { events, normaliser } = normalise([
    { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c', delta: 'x\ud83d' }, { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'text', text: 'y\ud83d' } }, { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c', delta: 'z' },
    { ...text('DELTA', 'r', 'a', '\ud83d') }, { ...text('DELTA', 'r', 'b', 'other') }, { ...text('DELTA', 'r', 'a', '\ude00') }
  ])
  t.strictSame(events.flatMap((event) => event.delta ?? event.data ?? []).slice(1), ['x', '\ufffd', { type: 'text', text: 'y\ufffd' }, 'z', 'other', '😀'])
  t.match(normaliser.message.content, [{ type: 'tool_use' }, { type: 'tool_result', output: [{ text: 'x\ufffd' }, { text: 'y\ufffd' }, { text: 'z' }] }, { type: 'text', text: '😀' }, { type: 'text', text: 'other' }])
})
