import t from 'tap'
import fc from 'fast-check'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { applyPatch } from '../../../plugins/ag-ui/json-patch.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { initialFold, snapshotEvents, stepFold, type TranscriptFold } from '../../../plugins/ag-ui/snapshot.ts'
import { input, legacyInput } from './project.ts'

const boundaries = { threadId: 'th-7', runId: 'rn-1' }
const started = { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0' }

/** The snapshot after some events. */
function after (events: readonly AgUiEvent[], given: NormalisedInput = input): AgUiEvent[] {
  let fold: TranscriptFold = initialFold(given)
  for (const event of events) fold = stepFold(fold, JSON.stringify(event))
  return snapshotEvents(JSON.parse(JSON.stringify(fold)) as TranscriptFold)
}

/** The transcript after some events. */
function transcript (events: readonly AgUiEvent[], given?: NormalisedInput): unknown {
  const snapshot = after(events, given).find(({ type }) => type === 'MESSAGES_SNAPSHOT')
  return snapshot?.type === 'MESSAGES_SNAPSHOT' && snapshot.messages
}

t.test('before the first event a client knows what it has sent', async (t) => {
  const given: NormalisedInput = { ...input, parentRunId: 'rn-0', state: { cart: [] }, messages: [{ id: 'u', role: 'user', content: 'Hi' }] }
  t.strictSame(after([], given), [
    { ...started, parentRunId: 'rn-0' }, { type: 'MESSAGES_SNAPSHOT', messages: given.messages }, { type: 'STATE_SNAPSHOT', snapshot: { cart: [] } }
  ])
})

t.test('the fold does not change the request', async (t) => {
  const given: NormalisedInput = { ...input, messages: [{ id: 'a', role: 'assistant' }] }
  const before = JSON.stringify(given)
  stepFold(initialFold(given), JSON.stringify({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'a' }))
  t.equal(JSON.stringify(given), before)
})

const id = fc.constantFrom('m', 'mm', 'm"', 'm\\', '', 'a')
const event = fc.oneof(
  { weight: 2, arbitrary: fc.record({ type: fc.constant('TEXT_MESSAGE_START' as const), messageId: id, role: fc.constant('assistant' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('REASONING_MESSAGE_START' as const), messageId: id, role: fc.constant('reasoning' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constantFrom('TEXT_MESSAGE_CONTENT' as const, 'REASONING_MESSAGE_CONTENT' as const),
      messageId: id,
      delta: fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('"}', '\\', '","delta":"', '\n', 'é', '😀', '\u2028')),
      metadata: fc.constantFrom({ a: 1 }),
      subagentRunId: fc.constantFrom('s')
    }, { requiredKeys: ['type', 'messageId', 'delta'] })
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('TOOL_CALL_START' as const), toolCallId: fc.constantFrom('c', 'd'), toolCallName: fc.constant('f') }) }
)

t.test('a delta comes to the same whether it was parsed or not', async (t) => {
  fc.assert(fc.property(fc.array(event, { maxLength: 20 }), (events) => {
    const [taken, parsed] = [initialFold(input), initialFold(input)]
    for (const event of events) {
      stepFold(taken, JSON.stringify(event))
      // With spaces, which the plugin never writes.
      stepFold(parsed, JSON.stringify(event, null, 1))
    }
    t.strictSame(taken, parsed)
  }), { numRuns: 500 })
})

t.test('half a message is in the transcript, and open again', async (t) => {
  t.strictSame(after([
    { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant', name: 'bot', metadata: { a: 1 } },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'Hel', metadata: { a: 2 } },
    { type: 'REASONING_START', messageId: 'span' },
    { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'g', delta: 'Hm' },
    { type: 'STEP_STARTED', stepName: 'one' },
    { type: 'STEP_STARTED', stepName: 'two' },
    { type: 'STEP_FINISHED', stepName: 'one' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 't', name: 'n' },
    { type: 'SUBAGENT_ERROR', subagentRunId: 't', message: 'x' },
    { type: 'RAW', event: 1 }, { type: 'CUSTOM', name: 'a', value: 1 }
  ]), [
    started,
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'r', role: 'assistant', content: 'Hel', name: 'bot', metadata: { a: 2 } }, { id: 'g', role: 'reasoning', content: 'Hm' }] },
    { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant', name: 'bot' },
    { type: 'REASONING_START', messageId: 'span' },
    { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning' },
    { type: 'STEP_STARTED', stepName: 'two' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n' }
  ])
})

t.test('what has ended is only in the transcript', async (t) => {
  t.strictSame(after([
    { type: 'REASONING_START', messageId: 'span' },
    { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning' }, { type: 'REASONING_MESSAGE_CONTENT', messageId: 'g', delta: 'Hm' }, { type: 'REASONING_MESSAGE_END', messageId: 'g' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'g', encryptedValue: 'e' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'nobody', encryptedValue: 'e' },
    { type: 'REASONING_END', messageId: 'span' },
    { type: 'TEXT_MESSAGE_START', messageId: 'r' }, { type: 'TEXT_MESSAGE_END', messageId: 'r', metadata: { usage: 1 } },
    { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'tool_call' }] } }
  ]), [
    started,
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'g', role: 'reasoning', content: 'Hm', encryptedValue: 'e' }, { id: 'r', role: 'assistant', content: '', metadata: { usage: 1 } }] },
    { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'tool_call' }] } }
  ])
})

t.test('a run that failed with something open ends in its error', async (t) => {
  t.strictSame(after([{ type: 'TEXT_MESSAGE_START', messageId: 'r' }, { type: 'RUN_ERROR', message: 'lost' }]).slice(2), [
    { type: 'TEXT_MESSAGE_START', messageId: 'r' }, { type: 'RUN_ERROR', message: 'lost' }
  ])
})

t.test('tool calls', async (t) => {
  const call = (id: string, text: string, more = {}): object => ({ id, type: 'function', function: { name: 'f', arguments: text }, ...more })
  const start = (toolCallId: string, parentMessageId?: string): AgUiEvent => ({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'f', ...parentMessageId !== undefined && { parentMessageId } })

  t.test('stand in their message, and their results right behind it', async (t) => {
    t.strictSame(transcript([
      start('c1', 'r'), { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"a":' }, { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '1}' }, { type: 'TOOL_CALL_END', toolCallId: 'c1', metadata: { m: 1 } },
      start('c2', 'r'), { type: 'TOOL_CALL_END', toolCallId: 'c2' },
      { type: 'TEXT_MESSAGE_START', messageId: 'x' }, { type: 'TEXT_MESSAGE_END', messageId: 'x' },
      { type: 'TOOL_CALL_RESULT', messageId: 't1', toolCallId: 'c1', content: 'one' },
      { type: 'TOOL_CALL_RESULT', messageId: 't2', toolCallId: 'c2', content: [{ type: 'text', text: 'two' }], metadata: { state: 'ERROR' } },
      { type: 'TOOL_CALL_RESULT', messageId: 't3', toolCallId: 'unknown', content: '' },
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c1', encryptedValue: 'e' }
    ]), [
      { id: 'r', role: 'assistant', toolCalls: [call('c1', '{"a":1}', { metadata: { m: 1 }, encryptedValue: 'e' }), call('c2', '')] },
      { id: 't1', role: 'tool', toolCallId: 'c1', content: 'one' },
      { id: 't2', role: 'tool', toolCallId: 'c2', content: [{ type: 'text', text: 'two' }], metadata: { state: 'ERROR' } },
      { id: 'x', role: 'assistant', content: '' },
      { id: 't3', role: 'tool', toolCallId: 'unknown', content: '' }
    ])
  })

  t.test('make a message where they name none, or one that cannot have calls', async (t) => {
    const given: NormalisedInput = { ...input, messages: [{ id: 'u', role: 'user', content: 'Hi' }] }
    t.strictSame(transcript([start('c1'), { type: 'TOOL_CALL_END', toolCallId: 'c1' }, start('c2', 'u'), { type: 'TOOL_CALL_END', toolCallId: 'c2' }], given), [
      ...given.messages, { id: 'c1', role: 'assistant', toolCalls: [call('c1', '')] }, { id: 'c2', role: 'assistant', toolCalls: [call('c2', '')] }
    ])
  })

  t.test('that are told again are no other call', async (t) => {
    t.strictSame(transcript([start('c', 'r'), { type: 'TOOL_CALL_END', toolCallId: 'c' }, { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'g' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }]), [
      { id: 'r', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'g', arguments: '' } }] }
    ])
  })

  t.test('that are open come as events, those behind them too, so that their order stays', async (t) => {
    t.strictSame(after([
      start('c1', 'r'), { type: 'TOOL_CALL_END', toolCallId: 'c1' },
      { ...start('c2', 'r'), metadata: { m: 1 } }, { type: 'TOOL_CALL_ARGS', toolCallId: 'c2', delta: '{"a":' },
      start('c3', 'r'), { type: 'TOOL_CALL_ARGS', toolCallId: 'c3', delta: '{}' }, { type: 'TOOL_CALL_END', toolCallId: 'c3' },
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c3', encryptedValue: 'e' },
      start('c4', 'r')
    ]), [
      started,
      { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'r', role: 'assistant', toolCalls: [call('c1', '')] }] },
      { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'f', parentMessageId: 'r', metadata: { m: 1 } },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'c2', delta: '{"a":' },
      { type: 'TOOL_CALL_START', toolCallId: 'c3', toolCallName: 'f', parentMessageId: 'r' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'c3', delta: '{}' },
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c3', encryptedValue: 'e' },
      { type: 'TOOL_CALL_END', toolCallId: 'c3' },
      { type: 'TOOL_CALL_START', toolCallId: 'c4', toolCallName: 'f', parentMessageId: 'r' }
    ])
  })
})

t.test('state follows snapshots and patches; a patch that does not fit changes nothing', async (t) => {
  const state = (events: readonly AgUiEvent[], given?: NormalisedInput): unknown => after(events, given).find(({ type }) => type === 'STATE_SNAPSHOT')
  t.equal(state([]), undefined)
  t.strictSame(state([{ type: 'STATE_SNAPSHOT', snapshot: null }]), { type: 'STATE_SNAPSHOT', snapshot: null })
  t.strictSame(state([
    { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } },
    { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/b', value: 2 }] },
    { type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/a' }, { op: 'remove', path: '/nope' }] }
  ]), { type: 'STATE_SNAPSHOT', snapshot: { a: 1, b: 2 } })
})

t.test('activities are made, replaced, kept and patched as the client does it', async (t) => {
  const snapshot = (content: object, more = {}): AgUiEvent => ({ type: 'ACTIVITY_SNAPSHOT', messageId: 'p', activityType: 'PLAN', content: content as Record<string, unknown>, ...more })
  const activity = (content: object, more = {}): object => ({ id: 'p', role: 'activity', activityType: 'PLAN', content, ...more })
  t.strictSame(transcript([snapshot({ a: 1 }, { metadata: { m: 1 } }), snapshot({ b: 1 })]), [activity({ b: 1 }, { metadata: { m: 1 } })])
  t.strictSame(transcript([snapshot({ a: 1 }), snapshot({ b: 1 }, { replace: false })]), [activity({ a: 1 })])
  t.strictSame(transcript([
    snapshot({ a: 1 }),
    { type: 'ACTIVITY_DELTA', messageId: 'p', activityType: 'PLAN', patch: [{ op: 'replace', path: '/a', value: 2 }], metadata: { m: 2 } },
    { type: 'ACTIVITY_DELTA', messageId: 'p', activityType: 'PLAN', patch: [{ op: 'remove', path: '/nope' }] },
    { type: 'ACTIVITY_DELTA', messageId: 'nobody', activityType: 'PLAN', patch: [] },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'p', delta: 'x' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'p', encryptedValue: 'e' }
  ]), [activity({ a: 2 }, { metadata: { m: 2 } })])
})

t.test('a snapshot of messages keeps only activities and thoughts that it does not know of', async (t) => {
  const given: NormalisedInput = {
    ...input,
    messages: [
      { id: 'u', role: 'user', content: 'old' }, { id: 'g', role: 'reasoning', content: 'hm' }, { id: 'p', role: 'activity', activityType: 'PLAN', content: {} }, { id: 'a', role: 'assistant', content: 'x' }
    ]
  }
  t.strictSame(transcript([{ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content: 'new' }, { id: 'b', role: 'assistant', content: 'y' }] }], given), [
    { id: 'u', role: 'user', content: 'new' }, given.messages[1], given.messages[2], { id: 'b', role: 'assistant', content: 'y' }
  ])
  t.strictSame(transcript([{ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'g2', role: 'reasoning', content: 'new' }] }], given), [given.messages[2], { id: 'g2', role: 'reasoning', content: 'new' }])
})

t.test('subagents keep their messages', async (t) => {
  t.strictSame(transcript([
    { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 's' }, { type: 'TEXT_MESSAGE_END', messageId: 'm' },
    { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: '', subagentRunId: 's' }
  ]), [{ id: 'm', role: 'assistant', content: '', subagentRunId: 's' }, { id: 't', role: 'tool', toolCallId: 'c', content: '', subagentRunId: 's' }])
})

t.test('clients before 1.0 get a transcript they do not throw on', async (t) => {
  const given: NormalisedInput = { ...legacyInput, messages: [{ id: 't', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 'a' }] }] }
  t.strictSame(transcript([], given), [{ id: 't', role: 'tool', toolCallId: 'c', content: 'a' }])
})

t.test('patches', async (t) => {
  const document = { a: { b: [1, 2, 3] }, 'x/y': 1, 'm~n': 2, '': 3, null: null }
  const patched = (...patch: Parameters<typeof applyPatch>[1]): unknown => applyPatch(document, patch)?.value

  t.test('do what RFC 6902 says', async (t) => {
    t.strictSame(patched({ op: 'add', path: '/a/b/1', value: 9 }), { ...document, a: { b: [1, 9, 2, 3] } })
    t.strictSame(patched({ op: 'add', path: '/a/b/-', value: 9 }), { ...document, a: { b: [1, 2, 3, 9] } })
    t.strictSame(patched({ op: 'replace', path: '/a/b/0', value: 9 }), { ...document, a: { b: [9, 2, 3] } })
    t.strictSame(patched({ op: 'remove', path: '/a/b/0' }), { ...document, a: { b: [2, 3] } })
    t.strictSame(patched({ op: 'remove', path: '/x~1y' }, { op: 'remove', path: '/m~0n' }, { op: 'remove', path: '/' }, { op: 'remove', path: '/null' }), { a: { b: [1, 2, 3] } })
    t.strictSame(patched({ op: 'move', from: '/a/b/0', path: '/c' }), { ...document, a: { b: [2, 3] }, c: 1 })
    t.strictSame(patched({ op: 'copy', from: '/a', path: '/c' }, { op: 'add', path: '/c/d', value: 1 }), { ...document, c: { b: [1, 2, 3], d: 1 } })
    t.strictSame(patched({ op: 'test', path: '/a', value: { b: [1, 2, 3] } }, { op: 'replace', path: '', value: [1] }), [1])
    t.strictSame(patched({ op: 'remove', path: '' }), null)
  })

  t.test('that do not fit are refused whole, and nothing is touched', async (t) => {
    const before = JSON.stringify(document)
    for (const wrong of [
      { op: 'remove', path: '/nope' }, { op: 'replace', path: '/nope', value: 1 }, { op: 'add', path: '/nope/x', value: 1 }, { op: 'add', path: '/a/b/9', value: 1 },
      { op: 'add', path: '/a/b/x', value: 1 }, { op: 'add', path: '/a/b/01', value: 1 }, { op: 'replace', path: '/a/b/-', value: 1 }, { op: 'add', path: '/x~1y/deep', value: 1 },
      { op: 'move', from: '/a', path: '/a/b' }, { op: 'move', from: '/nope', path: '/b' }, { op: 'copy', from: '/nope', path: '/b' },
      { op: 'test', path: '/a', value: { b: [1, 2] } }, { op: 'test', path: '/a', value: { c: 1 } }, { op: 'test', path: '/a', value: 1 }, { op: 'test', path: '/a/b', value: { 0: 1 } },
      { op: 'add', path: '/__proto__', value: {} }, { op: 'add', path: '/__proto__/x', value: 1 }
    ] as Parameters<typeof applyPatch>[1]) t.equal(applyPatch(document, [{ op: 'add', path: '/first', value: 1 }, wrong]), undefined, JSON.stringify(wrong))
    t.equal(JSON.stringify(document), before)
  })
})
