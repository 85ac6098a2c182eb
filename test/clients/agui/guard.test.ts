import fc from 'fast-check'
import t from 'tap'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { clients } from './clients.ts'
import { project } from './streams.ts'

const id = fc.constantFrom('a', 'b')
const owner = fc.option(fc.constantFrom('s1', 's2'), { nil: undefined, freq: 2 })
const role = fc.constant('reasoning' as const)
const tagged = <Fields extends Record<string, fc.Arbitrary<unknown>>>(type: AgUiEvent['type'], fields: Fields): fc.Arbitrary<unknown> =>
  fc.record({ type: fc.constant(type), ...fields, subagentRunId: owner })
const plain = <Fields extends Record<string, fc.Arbitrary<unknown>>>(type: AgUiEvent['type'], fields: Fields): fc.Arbitrary<unknown> =>
  fc.record({ type: fc.constant(type), ...fields })

/** Any event an extension may make, in any order. */
const events = fc.array(fc.oneof(
  tagged('TEXT_MESSAGE_START', { messageId: id }), tagged('TEXT_MESSAGE_CONTENT', { messageId: id, delta: id }), tagged('TEXT_MESSAGE_END', { messageId: id }),
  tagged('REASONING_START', { messageId: id }), tagged('REASONING_END', { messageId: id }),
  tagged('REASONING_MESSAGE_START', { messageId: id, role }), tagged('REASONING_MESSAGE_CONTENT', { messageId: id, delta: id }), tagged('REASONING_MESSAGE_END', { messageId: id }),
  tagged('TOOL_CALL_START', { toolCallId: id, toolCallName: id, parentMessageId: fc.option(id, { nil: undefined }) }),
  tagged('TOOL_CALL_ARGS', { toolCallId: id, delta: id }), tagged('TOOL_CALL_END', { toolCallId: id }), tagged('TOOL_CALL_RESULT', { messageId: id, toolCallId: id, content: id }),
  tagged('REASONING_ENCRYPTED_VALUE', { subtype: fc.constantFrom('message', 'tool-call'), entityId: id, encryptedValue: id }),
  tagged('STEP_STARTED', { stepName: id }), tagged('STEP_FINISHED', { stepName: id }),
  tagged('ACTIVITY_SNAPSHOT', { messageId: id, activityType: fc.constant('PLAN'), content: fc.constant({}), replace: fc.boolean() }),
  tagged('ACTIVITY_DELTA', { messageId: id, activityType: fc.constant('PLAN'), patch: fc.constant([]) }),
  plain('MESSAGES_SNAPSHOT', { messages: fc.constant([{ id: 'a', role: 'user', content: 'x' }]) }),
  plain('SUBAGENT_STARTED', { subagentRunId: fc.constantFrom('s1', 's2'), name: id, parentSubagentRunId: fc.option(fc.constantFrom('s1', 's2'), { nil: undefined }) }),
  plain('SUBAGENT_FINISHED', { subagentRunId: fc.constantFrom('s1', 's2') }), plain('SUBAGENT_ERROR', { subagentRunId: fc.constantFrom('s1', 's2'), message: id })
), { maxLength: 30 })

/** The id of a subagent's call, used again below a message of the run itself. */
const reusedCall = [
  { type: 'TOOL_CALL_START', toolCallId: 'a', toolCallName: 'a', subagentRunId: 's1' },
  { type: 'TOOL_CALL_END', toolCallId: 'a' },
  { type: 'TOOL_CALL_START', toolCallId: 'a', toolCallName: 'a', parentMessageId: 'b' }
]

// Clients before 0.0.59 know no subagents.
for (const client of clients.filter(({ version }) => version === '0.0.59' || version === '1.0.0')) {
  t.test(`in whatever order an extension makes its events, client ${client.version} is sent a legal stream`, async (t) => {
    const input: NormalisedInput = {
      threadId: 'thread', runId: 'run', messages: [{ id: 'b', role: 'assistant', content: 'x' }], tools: [], context: [], ...client.profile === 'v1' && { protocolVersion: '1.0' }
    }
    await fc.assert(fc.asyncProperty(events, fc.constantFrom('returned' as const, 'failed' as const), async (made, end) => {
      const lines = project(made.map((event) => ({ type: 'CUSTOM', name: 'make', value: { event } })), end, { input }, {
        eventConverters: [{ eventTypes: ['CUSTOM'], convert: (event, { emit }) => { emit((event as unknown as { value: { event: AgUiEvent } }).value.event) } }]
      })
      await client.watch(lines, { messages: input.messages })
    }), { numRuns: 300, examples: [[reusedCall, 'returned']] })
    t.pass('300 streams')
  })
}
