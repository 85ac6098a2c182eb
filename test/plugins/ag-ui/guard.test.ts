import t from 'tap'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { OrderGuard } from '../../../plugins/ag-ui/guard.ts'
import { deltaBlock, deltaEvent, type EventSink } from '../../../plugins/ag-ui/sink.ts'

const boundaries = { threadId: 'th', runId: 'rn' }
const start: AgUiEvent = { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0' }
const finish: AgUiEvent = { type: 'RUN_FINISHED', ...boundaries }
const failure: AgUiEvent = { type: 'RUN_ERROR', message: 'x' }
const said: AgUiEvent = { type: 'CUSTOM', name: 'a', value: 1 }

/** What passes, and which rules were about to be broken. */
function pass (events: readonly AgUiEvent[], finishedAfterError = false): { readonly passed: AgUiEvent[], readonly rules: string[] } {
  const passed: AgUiEvent[] = []
  const rules: string[] = []
  const sink: EventSink = { event: (event) => { passed.push(event) }, delta: (block, delta) => { passed.push(deltaEvent(block, delta)) } }
  const guard = new OrderGuard(sink, { ...boundaries, finishedAfterError, onViolation: (type, rule) => { rules.push(`${type}: ${rule}`) } })
  for (const event of events) guard.event(event)
  return { passed, rules }
}

/** Inside a run that then ends. */
function inside (events: readonly AgUiEvent[]): { readonly passed: AgUiEvent[], readonly rules: string[] } {
  const { passed, rules } = pass([start, ...events, failure])
  return { passed: passed.slice(1, -1), rules }
}

t.test('what is in order passes untouched', async (t) => {
  const events: AgUiEvent[] = [
    start,
    { type: 'STEP_STARTED', stepName: 's' },
    { type: 'REASONING_START', messageId: 'g' },
    { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'g', delta: 'x' },
    { type: 'REASONING_MESSAGE_END', messageId: 'g' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'g', encryptedValue: 'e' },
    { type: 'REASONING_END', messageId: 'g' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: '' },
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm' },
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'm' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c', encryptedValue: 'e' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'unknown', encryptedValue: 'e' },
    { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: '' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 'sub', name: 'n' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 'inner', name: 'n', parentSubagentRunId: 'sub' },
    { type: 'TEXT_MESSAGE_START', messageId: 's', subagentRunId: 'sub' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 's', delta: 'x' },
    { type: 'TEXT_MESSAGE_END', messageId: 's', subagentRunId: 'sub' },
    { type: 'SUBAGENT_ERROR', subagentRunId: 'inner', message: 'x' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 'sub' },
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'act', activityType: 'PLAN', content: {} },
    { type: 'ACTIVITY_DELTA', messageId: 'act', activityType: 'PLAN', patch: [] },
    { type: 'STATE_SNAPSHOT', snapshot: {} },
    { type: 'STATE_DELTA', delta: [] },
    { type: 'MESSAGES_SNAPSHOT', messages: [] },
    { type: 'RAW', event: 1 },
    said,
    { type: 'STEP_FINISHED', stepName: 's' },
    finish
  ]
  t.strictSame(pass(events), { passed: events, rules: [] })
})

t.test('the start comes first, and is made where nobody made it', async (t) => {
  t.strictSame(pass([said, finish]), { passed: [start, said, finish], rules: ['CUSTOM: RUN_STARTED comes first'] })
  t.strictSame(pass([failure]), { passed: [failure], rules: [] })
  t.strictSame(pass([start, start, finish]), { passed: [start, finish], rules: ['RUN_STARTED: one RUN_STARTED a run'] })
})

t.test('nothing follows a terminal', async (t) => {
  t.strictSame(pass([start, finish, said, failure, finish]).passed, [start, finish])
  t.strictSame(pass([start, failure, finish, said]).passed, [start, failure])
  t.strictSame(pass([start, failure, finish, finish], true).passed, [start, failure, finish])
  t.strictSame(pass([start, finish, finish], true).passed, [start, finish])
})

t.test('the boundaries name the run', async (t) => {
  t.strictSame(pass([{ type: 'RUN_STARTED', threadId: 'x', runId: 'y' }, { type: 'RUN_FINISHED', threadId: 'th', runId: 'y' }]), {
    passed: [{ type: 'RUN_STARTED', ...boundaries }, finish], rules: ['RUN_STARTED: the boundaries name the run', 'RUN_FINISHED: the boundaries name the run']
  })
})

t.test('a piece of what is not open is left out', async (t) => {
  const stray: AgUiEvent[] = [
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x' }, { type: 'TEXT_MESSAGE_END', messageId: 'm' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'm', delta: 'x' }, { type: 'REASONING_MESSAGE_END', messageId: 'm' }, { type: 'REASONING_END', messageId: 'm' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: 'x' }, { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'STEP_FINISHED', stepName: 's' }, { type: 'SUBAGENT_FINISHED', subagentRunId: 's' }, { type: 'SUBAGENT_ERROR', subagentRunId: 's', message: 'x' },
    { type: 'ACTIVITY_DELTA', messageId: 'a', activityType: 'PLAN', patch: [] }
  ]
  const { passed, rules } = inside(stray)
  t.strictSame(passed, [])
  t.equal(rules.length, stray.length)
})

t.test('chunks are left out: they open and end messages where nobody can see it', async (t) => {
  t.strictSame(inside([{ type: 'TEXT_MESSAGE_CHUNK', messageId: 'm' }, { type: 'TOOL_CALL_CHUNK', toolCallId: 'c' }, { type: 'REASONING_MESSAGE_CHUNK' }]).passed, [])
})

t.test('what is open is not opened again', async (t) => {
  const opened: AgUiEvent[] = [
    { type: 'TEXT_MESSAGE_START', messageId: 'm' }, { type: 'REASONING_MESSAGE_START', messageId: 'm', role: 'reasoning' }, { type: 'REASONING_START', messageId: 'm' },
    { type: 'TOOL_CALL_START', toolCallId: 'm', toolCallName: 'f' }, { type: 'STEP_STARTED', stepName: 'm' }, { type: 'SUBAGENT_STARTED', subagentRunId: 'm', name: 'n' }
  ]
  t.strictSame(inside([...opened, ...opened]).passed, opened)
})

t.test('what is open at the end is ended first, in order', async (t) => {
  const opened: AgUiEvent[] = [
    { type: 'SUBAGENT_STARTED', subagentRunId: 'outer', name: 'n' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 'inner', name: 'n' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 'over', name: 'n' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 'over' },
    { type: 'STEP_STARTED', stepName: 's', subagentRunId: 'inner' },
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f' },
    { type: 'REASONING_START', messageId: 'span' },
    { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 'outer' }
  ]
  const ends: AgUiEvent[] = [
    { type: 'TEXT_MESSAGE_END', messageId: 'm', subagentRunId: 'outer' },
    { type: 'REASONING_MESSAGE_END', messageId: 'g' },
    { type: 'REASONING_END', messageId: 'span' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'STEP_FINISHED', stepName: 's', subagentRunId: 'inner' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 'inner' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 'outer' }
  ]
  t.strictSame(pass([start, ...opened, finish]), { passed: [start, ...opened, ...ends, finish], rules: ['RUN_FINISHED: nothing is open at the end'] })
})

t.test('in a failure subagents fail', async (t) => {
  const guard = new OrderGuard({ event: () => {}, delta: () => {} }, { ...boundaries, finishedAfterError: false, onViolation: () => {} })
  guard.event(start)
  guard.event({ type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n' })
  t.strictSame(guard.closing(true), [{ type: 'SUBAGENT_ERROR', subagentRunId: 's', message: 'The run failed.' }])
  t.ok(guard.isStarted)
  t.notOk(guard.isEnded)
})

t.test('an id keeps its owner', async (t) => {
  t.test('on every piece', async (t) => {
    t.strictSame(inside([
      { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 's1' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x', subagentRunId: 's2' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 's2' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      { type: 'TEXT_MESSAGE_START', messageId: 'p' },
      { type: 'TEXT_MESSAGE_END', messageId: 'p', subagentRunId: 's2' }
    ]).passed, [
      { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 's1' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'x', subagentRunId: 's1' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      { type: 'TEXT_MESSAGE_START', messageId: 'm', subagentRunId: 's1' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      { type: 'TEXT_MESSAGE_START', messageId: 'p' },
      { type: 'TEXT_MESSAGE_END', messageId: 'p' }
    ])
  })

  t.test('where a call goes into somebody\'s message', async (t) => {
    t.strictSame(inside([
      { type: 'TEXT_MESSAGE_START', messageId: 'm' }, { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'm', subagentRunId: 's1' },
      { type: 'TOOL_CALL_START', toolCallId: 'd', toolCallName: 'f', parentMessageId: 'new', subagentRunId: 's1' }
    ]).passed.slice(2, 4), [
      { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'm' },
      { type: 'TOOL_CALL_START', toolCallId: 'd', toolCallName: 'f', parentMessageId: 'new', subagentRunId: 's1' }
    ])
  })

  t.test('where the message is known from the request, a result or a snapshot', async (t) => {
    const input = { threadId: 'th', runId: 'rn', messages: [{ id: 'a', role: 'assistant' as const, toolCalls: [{ id: 'c', type: 'function' as const, function: { name: 'f', arguments: '' } }] }] }
    const { passed } = pass([
      { ...start, input } as AgUiEvent,
      { type: 'TEXT_MESSAGE_START', messageId: 'a', subagentRunId: 's1' },
      { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', subagentRunId: 's1' },
      { type: 'TOOL_CALL_RESULT', messageId: 't', toolCallId: 'c', content: '', subagentRunId: 's1' },
      { type: 'TEXT_MESSAGE_START', messageId: 't', subagentRunId: 's2' },
      { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'g', role: 'reasoning', content: '' }, { id: 'p', role: 'activity', activityType: 'PLAN', content: {}, subagentRunId: 's3' }] },
      { type: 'REASONING_MESSAGE_START', messageId: 'g', role: 'reasoning', subagentRunId: 's1' },
      { type: 'ACTIVITY_SNAPSHOT', messageId: 'p', activityType: 'PLAN', content: {}, replace: false, subagentRunId: 's1' },
      { type: 'ACTIVITY_DELTA', messageId: 'p', activityType: 'PLAN', patch: [], subagentRunId: 's1' },
      { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'a', encryptedValue: 'e', subagentRunId: 's9' }
    ])
    t.strictSame(passed.map((event) => [event.type, (event as { subagentRunId?: string }).subagentRunId]), [
      ['RUN_STARTED', undefined], ['TEXT_MESSAGE_START', undefined], ['TOOL_CALL_START', undefined], ['TOOL_CALL_RESULT', 's1'], ['TEXT_MESSAGE_START', 's1'],
      ['MESSAGES_SNAPSHOT', undefined], ['REASONING_MESSAGE_START', undefined], ['ACTIVITY_SNAPSHOT', 's1'], ['ACTIVITY_DELTA', 's3'], ['REASONING_ENCRYPTED_VALUE', undefined]
    ])
  })

  t.test('and a step is ended by whom it was started', async (t) => {
    t.strictSame(inside([
      { type: 'STEP_STARTED', stepName: 's' }, { type: 'STEP_STARTED', stepName: 's', subagentRunId: 'x' },
      { type: 'STEP_FINISHED', stepName: 's', subagentRunId: 'y' }, { type: 'STEP_FINISHED', stepName: 's' }
    ]).passed.map((event) => [event.type, (event as { subagentRunId?: string }).subagentRunId]), [
      ['STEP_STARTED', undefined], ['STEP_STARTED', 'x'], ['STEP_FINISHED', undefined]
    ])
  })
})

t.test('a subagent run starts once, ends once, and has a parent that is known', async (t) => {
  t.strictSame(inside([
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n', parentSubagentRunId: 'nobody' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n' },
    { type: 'SUBAGENT_ERROR', subagentRunId: 's', message: 'x' }
  ]).passed, [{ type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'n' }, { type: 'SUBAGENT_FINISHED', subagentRunId: 's' }])
})

t.test('interrupts have ids of their own, and there is at least one', async (t) => {
  const end = (ids: readonly string[]): AgUiEvent => ({ ...finish, outcome: { type: 'interrupt', interrupts: ids.map((id) => ({ id, reason: 'tool_call' })) } }) as AgUiEvent
  t.strictSame(pass([start, end(['a', 'b'])]), { passed: [start, end(['a', 'b'])], rules: [] })
  t.strictSame(pass([start, end(['a', 'b', 'a'])]).passed, [start, end(['a', 'b'])])
  t.strictSame(pass([start, end([])]).passed, [start, finish])
})

t.test('deltas of blocks that are known to be open pass until the terminal', async (t) => {
  const seen: string[] = []
  const guard = new OrderGuard({ event: () => {}, delta: (block, delta) => { seen.push(block.id + delta) } }, { ...boundaries, finishedAfterError: false, onViolation: () => {} })
  const block = deltaBlock('TOOL_CALL_ARGS', 'c')
  guard.event(start)
  guard.delta(block, '1')
  guard.event(failure)
  guard.delta(block, '2')
  t.strictSame(seen, ['c1'])
})
