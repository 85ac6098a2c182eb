import t from 'tap'
import { lines, normalise } from '../../helpers/normalise.ts'

const call = (type: string, toolCallId: string, more: object = {}): Record<string, unknown> => ({ type: `TOOL_CALL_${type}`, replyId: 'r', toolCallId, ...more })
const result = (type: string, toolCallId: string, more: object = {}): Record<string, unknown> => ({ type: `TOOL_RESULT_${type}`, replyId: 't', toolCallId, ...more })
const start = { type: 'AGENT_START' }

/** Arguments by call, as a consumer would join them. */
function argumentsOf (events: readonly Record<string, unknown>[]): Record<string, string> {
  const all: Record<string, string> = {}
  for (const { type, toolCallId, delta } of events) {
    if (type === 'TOOL_CALL_DELTA') all[String(toolCallId)] = (all[String(toolCallId)] ?? '') + String(delta)
  }
  return all
}

const shapes = {
  interleaved: [call('START', 'A', { toolCallName: 'a' }), call('START', 'B', { toolCallName: 'b' }), call('DELTA', 'B', { delta: '{"b":' }), call('DELTA', 'A', { delta: '{"a":1}' }), call('DELTA', 'B', { delta: '2}' })],
  'one after the other without ends': [call('START', 'A', { toolCallName: 'a' }), call('DELTA', 'A', { delta: '{"a":' }), call('DELTA', 'A', { delta: '1}' }), call('START', 'B', { toolCallName: 'b' }), call('DELTA', 'B', { delta: '{"b":2}' })],
  'each whole at once': [call('START', 'A', { toolCallName: 'a' }), call('DELTA', 'A', { delta: '{"a":1}' }), call('END', 'A'), call('START', 'B', { toolCallName: 'b' }), call('DELTA', 'B', { delta: '{"b":2}' }), call('END', 'B')],
  'without starts': [call('DELTA', 'A', { delta: '{"a":1}', toolCallName: 'a' }), call('DELTA', 'B', { delta: '{"b":2}', toolCallName: 'b' })]
}
for (const [name, yielded] of Object.entries(shapes)) {
  t.test(`two calls keep their arguments: ${name}`, async (t) => {
    const { events, normaliser } = normalise(yielded)
    t.strictSame(argumentsOf(events), { A: '{"a":1}', B: '{"b":2}' })
    t.strictSame(normaliser.message.content, [
      { type: 'tool_use', id: 'A', name: 'a', input: { a: 1 }, content: '{"a":1}', metadata: {}, state: 'pending' },
      { type: 'tool_use', id: 'B', name: 'b', input: { b: 2 }, content: '{"b":2}', metadata: {}, state: 'pending' }
    ])
  })
}

t.test('arguments are always JSON: none or blank ones get an empty object', async (t) => {
  const { events } = normalise([call('START', 'A', { toolCallName: 'a' }), call('END', 'A'), call('START', 'B', { toolCallName: 'b' }), call('DELTA', 'B', { delta: ' ' }), call('DELTA', 'B', { delta: '\n' }), call('END', 'B')])
  t.strictSame(argumentsOf(events), { A: '{}', B: ' \n{}' })
  t.strictSame(JSON.parse(' \n{}'), {})
})

t.test('names are filled in everywhere, and calls without an id get one', async (t) => {
  const { events } = normalise([start, call('START', '', { toolCallName: 'add' }), call('DELTA', '', { delta: '{}' }), { type: 'TOOL_CALL_END' }, call('START', 'x'), call('END', 'x', { toolCallName: 'ignored' })])
  const id = events[1]?.toolCallId
  t.match(id, /^call-/)
  t.strictSame(events.slice(1, -2).map(({ type, toolCallId, toolCallName }) => [type, toolCallId, toolCallName]), [
    ['TOOL_CALL_START', id, 'add'], ['TOOL_CALL_DELTA', id, 'add'], ['TOOL_CALL_END', id, 'add'], ['TOOL_CALL_START', 'x', 'unknown'], ['TOOL_CALL_DELTA', 'x', 'unknown'], ['TOOL_CALL_END', 'x', 'unknown']
  ])
})

t.test('a start told twice is dropped while the call is bare, and begins it anew once it had arguments', async (t) => {
  const { events, repairs } = normalise([start, call('START', 'A', { toolCallName: 'a' }), call('START', 'A'), call('DELTA', 'A', { delta: '{' }), call('START', 'A'), call('DELTA', 'A', { delta: '{}' }), call('END', 'A'), call('END', 'A'), call('DELTA', 'A', { delta: 'late' })])
  t.strictSame(lines(events).slice(1, -2), ['TOOL_CALL_START r/A', 'TOOL_CALL_DELTA r/A "{"', 'TOOL_CALL_END r/A', 'TOOL_CALL_START r/A', 'TOOL_CALL_DELTA r/A "{}"', 'TOOL_CALL_END r/A'])
  t.strictSame(repairs, ['dropped duplicate TOOL_CALL_START A', 'closed missing-end TOOL_CALL_END A', 'dropped not-open TOOL_CALL_END A', 'dropped not-open TOOL_CALL_DELTA A'])
})

t.test('deltas and ends that name no call and find none are dropped', async (t) => {
  const { events, repairs } = normalise([start, call('DELTA', '', { delta: 'x' }), call('END', ''), result('START', ''), result('TEXT_DELTA', '', { delta: 'x' }), result('END', ''), result('DATA_DELTA', '', { data: { type: 'text', text: 'x' } })])
  t.strictSame(lines(events), ['AGENT_START', 'AGENT_RESULT', 'AGENT_END MODEL_STOP'])
  t.equal(repairs.length, 6)
})

t.test('the executor is told and stands in the call\'s metadata', async (t) => {
  const { events, normaliser } = normalise([start, call('START', 'A', { toolCallName: 'a', executor: 'CLIENT', metadata: { m: 1 } }), call('END', 'A', { metadata: { signature: 's' } })])
  t.match(events[1], { executor: 'client', metadata: { m: 1 } })
  t.match(normaliser.message.content, [{ metadata: { executor: 'client', m: 1, signature: 's' } }])
})

t.test('a result closes the arguments of its call, and may arrive in any shape', async (t) => {
  const { events, normaliser } = normalise([
    start, call('START', 'A', { toolCallName: 'a' }), result('START', 'A'), result('TEXT_DELTA', 'A', { delta: 'one' }), result('DATA_DELTA', 'A', { data: { type: 'image', source: { type: 'url', url: 'http://x/' } } }), result('TEXT_DELTA', '', { delta: 'two' }), result('END', 'A', { state: 'ERROR', metadata: { k: 1 } }),
    call('START', 'B', { toolCallName: 'b' }), call('END', 'B'), result('END', 'B'), result('DATA_DELTA', 'C', { data: { type: 'text', text: 'c' } }), result('END', '', { state: 'odd' })
  ])
  t.strictSame(lines(events).slice(1, -2), [
    'TOOL_CALL_START r/A', 'TOOL_CALL_DELTA r/A "{}"', 'TOOL_CALL_END r/A', 'TOOL_RESULT_START t/A', 'TOOL_RESULT_TEXT_DELTA t/A "one"', 'TOOL_RESULT_DATA_DELTA t/A', 'TOOL_RESULT_TEXT_DELTA t/A "two"', 'TOOL_RESULT_END t/A error',
    'TOOL_CALL_START r/B', 'TOOL_CALL_DELTA r/B "{}"', 'TOOL_CALL_END r/B', 'TOOL_RESULT_START t/B', 'TOOL_RESULT_END t/B success',
    'TOOL_CALL_START t/C', 'TOOL_CALL_DELTA t/C "{}"', 'TOOL_CALL_END t/C', 'TOOL_RESULT_START t/C', 'TOOL_RESULT_DATA_DELTA t/C', 'TOOL_RESULT_END t/C error'
  ])
  t.match(normaliser.message.content[1], { type: 'tool_result', id: 'A', name: 'a', state: 'error', metadata: { k: 1 }, output: [{ text: 'one' }, { type: 'image' }, { text: 'two' }] })
  t.match(normaliser.message.content[0], { state: 'finished' })
})

t.test('a second result of a call is dropped, unless the first was a suspension or the call began anew', async (t) => {
  const { events, repairs } = normalise([
    start, result('START', 'A'), result('START', 'A'), result('END', 'A', { state: 'running' }), result('START', 'A'), result('END', 'A'), result('START', 'A'), result('TEXT_DELTA', 'A', { delta: 'x' }), result('END', 'A'),
    call('START', 'A'), result('START', 'A'), call('START', 'A')
  ])
  t.strictSame(lines(events).filter((line) => line.startsWith('TOOL_RESULT')), [
    'TOOL_RESULT_START t/A', 'TOOL_RESULT_END t/A running', 'TOOL_RESULT_START t/A', 'TOOL_RESULT_END t/A success', 'TOOL_RESULT_START t/A', 'TOOL_RESULT_END t/A interrupted'
  ])
  t.strictSame(repairs.filter((repair) => repair.startsWith('dropped')), ['dropped duplicate TOOL_RESULT_START A', 'dropped duplicate TOOL_RESULT_START A', 'dropped not-open TOOL_RESULT_TEXT_DELTA A', 'dropped not-open TOOL_RESULT_END A'])
})

t.test('a result without its call gets one, unless an earlier execution announced it', async (t) => {
  const yielded = [start, result('START', 'A', { toolCallName: 'a' }), result('END', 'A'), result('END', 'B', { toolCallName: 'b' }), result('END', 'B')]
  t.strictSame(lines(normalise(yielded).events).slice(1, -2), ['TOOL_CALL_START t/A', 'TOOL_CALL_DELTA t/A "{}"', 'TOOL_CALL_END t/A', 'TOOL_RESULT_START t/A', 'TOOL_RESULT_END t/A success'])
  t.strictSame(lines(normalise(yielded, 'returned', { knownCalls: new Set(['A', 'B']) }).events).slice(1, -2), [
    'TOOL_RESULT_START t/A', 'TOOL_RESULT_END t/A success', 'TOOL_RESULT_START t/B', 'TOOL_RESULT_END t/B success'
  ])
  const known = normalise([result('END', 'B')], 'returned', { knownCalls: new Set(['B']) })
  t.match(known.events[1], { type: 'TOOL_RESULT_START', toolCallName: 'unknown' })
})

t.test('tools with reserved names pass: hiding them is a matter of the protocol', async (t) => {
  const { events } = normalise([start, call('START', 'A', { toolCallName: '__finish' })])
  t.match(events[1], { toolCallName: '__finish' })
})

t.test('a pause announces its calls, fills them from what was streamed, and asks for each once', async (t) => {
  const use = (id: string, more: object = {}): object => ({ type: 'tool_use', id, name: `tool ${id}`, input: {}, ...more })
  const { events, normaliser, repairs } = normalise([
    start, call('START', 'A', { toolCallName: 'a', metadata: { sig: 1 } }), call('DELTA', 'A', { delta: '{"x":1}' }),
    { type: 'REQUIRE_USER_CONFIRM', replyId: 't', toolCalls: [use('A', { name: '' }), use('B', { input: { y: 2 }, metadata: { suggestedRules: [] } }), use('B'), use(''), 5, { type: 'text', text: 'no call' }] },
    { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [use('C', { content: '{"z":3}', input: null, state: 'SUBMITTED' }), use('A')] }, { type: 'REQUIRE_USER_CONFIRM', toolCalls: [use('A')] },
    { type: 'REQUIRE_INPUT', requests: [{ id: 'Q', message: null, responseSchema: { type: 'string' } }, { id: 'Q' }, { id: '' }, null] }, { source: 'kid', type: 'REQUIRE_USER_CONFIRM', toolCalls: [use('K')] }
  ])
  const A = { type: 'tool_use', id: 'A', name: 'a', input: { x: 1 }, content: '{"x":1}', metadata: { sig: 1 }, state: 'asking' }
  const B = { type: 'tool_use', id: 'B', name: 'tool B', input: { y: 2 }, content: '{"y":2}', metadata: { suggestedRules: [] }, state: 'asking' }
  const C = { type: 'tool_use', id: 'C', name: 'tool C', input: { z: 3 }, content: '{"z":3}', metadata: {}, state: 'submitted' }
  const Q = { id: 'Q', reason: 'input_required', responseSchema: { type: 'string' } }
  t.strictSame(events.filter(({ type }) => String(type).startsWith('REQUIRE')).slice(0, 3), [
    { type: 'REQUIRE_USER_CONFIRM', toolCalls: [A, B], replyId: 't' }, { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [C], replyId: 't' }, { type: 'REQUIRE_INPUT', requests: [Q], replyId: 't' }
  ])
  t.strictSame(argumentsOf(events), { A: '{"x":1}', B: '{"y":2}', C: '{"z":3}', K: '{}' })
  t.strictSame(normaliser.pending, [
    { kind: 'confirm', replyId: 't', toolCall: A }, { kind: 'confirm', replyId: 't', toolCall: B }, { kind: 'external', replyId: 't', toolCall: C }, { kind: 'input', replyId: 't', request: Q }
  ])
  t.match(normaliser.message.content, [{ id: 'A', state: 'asking' }, { id: 'B', state: 'asking' }, { id: 'C', state: 'pending' }])
  t.ok(repairs.includes('dropped empty REQUIRE_USER_CONFIRM'))
  t.equal(normaliser.reason, 'PERMISSION_ASKING')
})

t.test('a pause of a call that an earlier execution announced does not announce it again', async (t) => {
  const { events } = normalise([start, { type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ type: 'tool_use', id: 'A', name: '', input: {} }] }], 'returned', { knownCalls: new Set(['A']) })
  t.match(events.slice(1, -2), [{ type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ id: 'A', name: 'unknown', content: '{}' }] }])
})

t.test('arguments that a pause states win over those that were streamed, in both forms', async (t) => {
  const use = { type: 'tool_use', id: 'A', name: 'a' }
  const asked = (block: object): unknown => normalise([call('DELTA', 'A', { delta: '{"x":1}' }), { type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ ...use, ...block }] }]).normaliser.pending[0]
  t.match(asked({ input: { x: 2 } }), { toolCall: { input: { x: 2 }, content: '{"x":2}' } })
  t.match(asked({ input: {}, content: '{}' }), { toolCall: { input: {}, content: '{}' } })
})

t.test('what is answered in the same run waits no more', async (t) => {
  const use = (id: string): object => ({ type: 'tool_use', id, name: 'x', input: {} })
  const { normaliser, events } = normalise([
    { type: 'REQUIRE_USER_CONFIRM', toolCalls: [use('A'), use('B'), use('C'), use('D')] }, { type: 'USER_CONFIRM_RESULT', confirmResults: [{ confirmed: true, toolCall: use('A'), rules: [{ tool_name: 'x', behavior: 'ALLOW', rule_content: null }], reason: null }, { confirmed: 1 }, { confirmed: false, toolCall: 5 }, 5] },
    { type: 'EXTERNAL_EXECUTION_RESULT', toolResults: [{ type: 'tool_result', id: 'B', output: 'text', state: 'SUCCESS' }, use('D')] }, result('END', 'C', { state: 'denied' }), result('END', 'D', { state: 'running' })
  ])
  t.strictSame(normaliser.pending.map((pending) => pending.kind === 'confirm' && pending.toolCall.id), ['D'])
  t.match(events.find(({ type }) => type === 'USER_CONFIRM_RESULT'), { confirmResults: [{ confirmed: true, rules: [{ tool_name: 'x', behavior: 'allow' }] }] })
  t.match(events.find(({ type }) => type === 'EXTERNAL_EXECUTION_RESULT'), { toolResults: [{ id: 'B', output: [{ type: 'text', text: 'text' }], state: 'success' }] })
})

t.test('a child\'s pause is completed from the child\'s own stream and does not pause the root', async (t) => {
  const kid = { source: 'kid' }
  const { events, normaliser } = normalise([
    { ...call('START', 'A', { toolCallName: 'a' }), ...kid }, { ...call('DELTA', 'A', { delta: '{"k":1}' }), ...kid }, { ...kid, type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [{ type: 'tool_use', id: 'A', name: 'a', input: {} }] }
  ])
  t.match(events.find(({ type }) => type === 'REQUIRE_EXTERNAL_EXECUTION'), { source: 'kid', toolCalls: [{ input: { k: 1 }, content: '{"k":1}' }] })
  t.strictSame(normaliser.pending, [])
  t.equal(normaliser.reason, 'MODEL_STOP')
})
