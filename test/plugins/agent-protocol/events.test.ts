import { readFileSync } from 'node:fs'
import t from 'tap'
import { type AgentEvent, type AgentEventInit, agentEventSchemas, type AgentEventType } from '../../../lib/agent/index.ts'
import { controlOf, decodeTaskEvent, detailOf, encodeTaskEvent, parseTaskEvent } from '../../../plugins/agent-protocol/events.ts'
import { type TaskEvent, withoutPayload } from '../../../plugins/agent-protocol/wire.ts'

// Written by the reference's codec: 31 events of agents, a terminal status and a confirmation of the server's own.
const golden = readFileSync(new URL('../../fixtures/agent-protocol-golden-events.jsonl', import.meta.url), 'utf8').trim().split('\n')

t.test('every golden event of an agent is read, and written again with the same members and payload', async (t) => {
  const types = new Set<string>()
  for (const line of golden) {
    const envelope = parsed(line)
    if (envelope.payload === undefined) continue
    const [event, ...others] = decodeTaskEvent(envelope)
    t.strictSame(others, [])
    types.add(event?.type ?? '')
    const { payload, ...written } = encodeTaskEvent(withoutTask(event) as AgentEvent, { taskId: 't-1', agentId: envelope.agentId })
    const { seq, payload: theirs, ...read } = envelope
    t.strictSame(written, read, `${String(envelope.eventType)} has the reference's flat members`)
    t.strictSame(withoutNulls(JSON.parse(payload as string)), withoutNulls(JSON.parse(theirs as string)))
    t.equal(event?.metadata?.taskId, 't-1')
  }
  t.strictSame(Object.keys(agentEventSchemas).filter((type) => !types.has(type)), ['REQUIRE_INPUT'], 'the one type that the reference does not have')
})

t.test('what only the server says is no event of an agent', async (t) => {
  const status = parsed(golden.at(-2) as string)
  t.strictSame(decodeTaskEvent(status), [])
  t.strictSame(controlOf(status), { kind: 'status', status: 'success' })
  t.strictSame(controlOf({ type: 'STATUS', status: 'CANCELED' }), { kind: 'status', status: 'cancelled' })
  t.strictSame(controlOf({ type: 'STATUS', status: 'success', result: 'done' }), { kind: 'status', status: 'success', result: 'done' })
  t.equal(controlOf({ type: 'STATUS', status: 'odd' }), undefined)
  t.strictSame(controlOf({ type: 'RUN_ERROR', error: 'broke', code: 'internal_error' }), { kind: 'error', error: 'broke', code: 'internal_error' })
  t.strictSame(controlOf({ type: 'STREAM_GAP', oldestSeq: 4, lastSeq: 9, reason: 'evicted', missed: 3 }), { kind: 'gap', oldestSeq: 4, lastSeq: 9, reason: 'evicted' })
  t.equal(controlOf({ type: 'TEXT_DELTA', text: 'a' }), undefined)
  t.strictSame(decodeTaskEvent({ type: 'RUN_ERROR', error: 'broke' }), [])
  t.strictSame(decodeTaskEvent({ type: 'LATER', text: 'a' }), [])
  t.strictSame(decodeTaskEvent({ type: 'AGENT_EVENT', eventType: 'HINT_BLOCK' }), [])
})

t.test('the server\'s own confirmation is read from its flat members', async (t) => {
  t.strictSame(decodeTaskEvent(parsed(golden.at(-1) as string)), [{
    type: 'REQUIRE_USER_CONFIRM',
    toolCalls: [{ type: 'tool_use', id: 'call-1', name: 'bash', input: { cmd: 'ls' }, content: '{"cmd":"ls"}', state: 'asking' }]
  }])
})

t.test('a payload counts under a type that nobody knows', async (t) => {
  t.strictSame(decodeTaskEvent({ type: 'LATER', payload: '{"type":"TEXT_BLOCK_DELTA","delta":"a"}' }), [{ type: 'TEXT_BLOCK_DELTA', delta: 'a' }])
})

t.test('a broken payload gives way to the flat members', async (t) => {
  const timestamp = '2026-11-30T19:55:38.021961374Z'
  const rows: (readonly [TaskEvent, AgentEventInit[]])[] = [
    [{ type: 'RUN_STARTED', agentId: 'worker', timestamp }, [{ type: 'AGENT_START', name: 'worker', createdAt: timestamp }]],
    [{ type: 'RUN_STARTED' }, [{ type: 'AGENT_START', name: 'remote' }]],
    [{ type: 'RUN_FINISHED', timestamp: 'yesterday' }, [{ type: 'AGENT_END' }]],
    [{ type: 'TEXT_DELTA', text: 'a', taskId: 't' }, [{ type: 'TEXT_BLOCK_DELTA', delta: 'a', metadata: { taskId: 't' } }]],
    [{ type: 'TEXT_DELTA' }, []],
    [{ type: 'THINKING_DELTA', text: 'a' }, [{ type: 'THINKING_BLOCK_DELTA', delta: 'a' }]],
    [{ type: 'TOOL_CALL_START', toolCallId: 'c', toolName: 'n' }, [{ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'n' }]],
    [{ type: 'TOOL_CALL_END', toolCallId: 'c' }, [{ type: 'TOOL_CALL_END', toolCallId: 'c' }]],
    [{ type: 'TOOL_CALL_END' }, []],
    [{ type: 'TOOL_RESULT', toolCallId: 'c', status: 'DENIED' }, [{ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'denied' }]],
    [{ type: 'TOOL_RESULT', toolCallId: 'c', status: 'denied' }, [{ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'denied' }]],
    [{ type: 'TOOL_RESULT', toolCallId: 'c' }, [{ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'success' }]]
  ]
  for (const [event, expected] of rows) {
    for (const payload of ['{"type":"TEXT_BLOCK_', '[]', '{"type":"NOPE"}', '', undefined]) {
      t.strictSame(decodeTaskEvent({ ...event, ...payload !== undefined && { payload } }), expected, `${event.type ?? ''} ${payload ?? ''}`)
    }
  }
})

t.test('the input of a pending call is an object whatever the server wrote', async (t) => {
  const inputOf = (toolInputJson: unknown): unknown => {
    const [event] = decodeTaskEvent({ type: 'REQUIRE_CONFIRM', pendingConfirms: [{ toolCallId: 'c', toolName: 'n', toolInputJson: toolInputJson as string }] })
    return event?.type === 'REQUIRE_USER_CONFIRM' ? event.toolCalls[0]?.input : undefined
  }
  t.strictSame(inputOf('{"a":1}'), { a: 1 })
  t.strictSame(inputOf('[1]'), { raw: [1] })
  t.strictSame(inputOf('"x"'), { raw: 'x' })
  t.strictSame(inputOf('{"a":'), { raw: '{"a":' })
  t.strictSame(inputOf(' '), {})
  t.strictSame(inputOf(undefined), {})
})

t.test('pending calls are read in snake case too, and those without an id are left out', async (t) => {
  const pendingConfirms = [{ tool_call_id: 'c', tool_name: 'n', tool_input_json: '{}' }, { toolName: 'n' }, null] as unknown as TaskEvent['pendingConfirms'] & {}
  t.strictSame(decodeTaskEvent({ type: 'REQUIRE_CONFIRM', pendingConfirms }), [{
    type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ type: 'tool_use', id: 'c', name: 'n', input: {}, content: '{}', state: 'asking' }]
  }])
})

t.test('a pause that waits for more than confirmations gives an event of each kind, once', async (t) => {
  const external = [{ toolCallId: 'x', toolName: 'n', toolInputJson: '{}' }]
  const pendingInputs = [{ id: 'i', reason: 'input_required' }]
  const types = (event: TaskEvent): string[] => decodeTaskEvent({ type: 'REQUIRE_CONFIRM', ...event }).map(({ type }) => type)
  t.strictSame(types({ pendingConfirms: external, pendingExternal: external, pendingInputs }), ['REQUIRE_USER_CONFIRM', 'REQUIRE_EXTERNAL_EXECUTION', 'REQUIRE_INPUT'])
  t.strictSame(types({ pendingExternal: external, payload: JSON.stringify({ type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [] }) }), ['REQUIRE_EXTERNAL_EXECUTION'])
  t.strictSame(types({ pendingInputs }), ['REQUIRE_INPUT'])
  t.strictSame(types({ pendingInputs: 5 as unknown as [] }), ['REQUIRE_USER_CONFIRM'])
})

t.test('payloads under the names of older versions are read', async (t) => {
  const typeOf = (type: string, rest = {}): string | undefined => decodeTaskEvent({ type: 'AGENT_EVENT', payload: JSON.stringify({ type, ...rest }) })[0]?.type
  t.equal(typeOf('REPLY_START'), 'AGENT_START')
  t.equal(typeOf('REPLY_END'), 'AGENT_END')
  t.equal(typeOf('RUN_STARTED'), 'AGENT_START')
  t.equal(typeOf('RUN_FINISHED'), 'AGENT_END')
  t.equal(typeOf('MODEL_CALL_STARTED'), 'MODEL_CALL_START')
  t.equal(typeOf('MODEL_CALL_ENDED'), 'MODEL_CALL_END')
  t.equal(typeOf('BINARY_BLOCK_START'), 'DATA_BLOCK_START')
  t.equal(typeOf('BINARY_BLOCK_DELTA', { delta: 'QQ==' }), 'DATA_BLOCK_DELTA')
  t.equal(typeOf('BINARY_BLOCK_END'), 'DATA_BLOCK_END')
  t.equal(typeOf('TOOL_RESULT_BINARY_DELTA', { toolCallId: 'c', data: { type: 'text', text: 'a' } }), 'TOOL_RESULT_DATA_DELTA')
  t.equal(typeOf('THREAD_EXPOSED', { subagentId: 's', agentId: 'a', sessionId: 'x' }), 'SUBAGENT_EXPOSED')
  t.equal(typeOf('toString'), undefined)
})

t.test('an event that cannot be written goes without its payload', async (t) => {
  const metadata: Record<string, unknown> = {}
  metadata.self = metadata
  const event = { type: 'TEXT_BLOCK_DELTA', id: 'e', createdAt: '2026-01-01T00:00:00Z', delta: 'a', metadata } as unknown as AgentEvent
  t.strictSame(encodeTaskEvent(event, { taskId: 't' }), { type: 'TEXT_DELTA', taskId: 't', timestamp: '2026-01-01T00:00:00Z', text: 'a', eventType: 'TEXT_BLOCK_DELTA' })
})

t.test('eight types are shown below verbose', async (t) => {
  const shown = (detail: string): AgentEventType[] => (Object.keys(agentEventSchemas) as AgentEventType[]).filter((type) => detailOf(type) === detail)
  t.strictSame(shown('status'), ['AGENT_START', 'AGENT_END', 'TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT_END', 'REQUIRE_USER_CONFIRM'])
  t.strictSame(shown('full'), ['TEXT_BLOCK_DELTA', 'THINKING_BLOCK_DELTA'])
  t.equal(shown('verbose').length, 24)
})

t.test('frames are read whatever they hold', async (t) => {
  t.strictSame(parseTaskEvent('{"seq":4,"type":"STATUS"}'), { seq: 4, type: 'STATUS' })
  t.strictSame(parseTaskEvent('{"seq":" 4 "}'), { seq: 4 })
  t.strictSame(parseTaskEvent('{"seq":1.5}'), {})
  t.strictSame(parseTaskEvent('{"__proto__":{"seq":1}}'), {})
  for (const data of ['', 'x', '[]', '5', 'null']) t.equal(parseTaskEvent(data), undefined)
})

t.test('a payload can be cut from a written event', async (t) => {
  const text = 'he said ","payload":"x'
  const event = { type: 'TEXT_BLOCK_DELTA', id: 'e', createdAt: '2026-01-01T00:00:00Z', delta: text } as const
  const { payload, ...rest } = encodeTaskEvent(event, { taskId: 't' })
  t.type(payload, 'string')
  t.strictSame(JSON.parse(withoutPayload(JSON.stringify({ ...rest, payload }))), rest)
  t.strictSame(JSON.parse(withoutPayload(JSON.stringify(rest))), rest)
})

function parsed (line: string): TaskEvent {
  return parseTaskEvent(line) as TaskEvent
}

function withoutTask (event: AgentEventInit | undefined): unknown {
  const { metadata, ...rest } = event as AgentEvent
  return rest
}

function withoutNulls (value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, member: unknown) => member === null ? undefined : member))
}
