// Whatever an agent yields after it was answered, its stream stays legal, and each answered call gets one result at most.
import fc from 'fast-check'
import t from 'tap'
import { checkOrder, checkShape } from '../../helpers/ag-ui-check.ts'
import { type ResumedCall } from '../../../plugins/ag-ui/resumed-run.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { agentEvents, ends, project } from '../../clients/agui/streams.ts'

const wireId = (id: string): fc.Arbitrary<string> => fc.constantFrom(id, `${id}:before`)
const resumedCall = fc.constantFrom('c1', 'c2').chain((id): fc.Arbitrary<ResumedCall> => fc.oneof(
  fc.record({ id: fc.constant(id), wireId: wireId(id) }),
  fc.record({ id: fc.constant(id), wireId: wireId(id), editedArgs: fc.constant({ a: 1 }) }),
  fc.record({ id: fc.constant(id), wireId: wireId(id), result: fc.record({ messageId: fc.constant(`agui-resume-${id}`), output: fc.constant([{ type: 'text' as const, text: 'x' }]), state: fc.constant('success' as const) }) }),
  fc.record({ id: fc.constant(id), wireId: wireId(id), result: fc.constant({ messageId: 'm', output: [], state: 'success' as const }), isTold: fc.constant(true as const) })
))

t.test('streams of answering runs', async (t) => {
  fc.assert(fc.property(agentEvents, ends, fc.uniqueArray(resumedCall, { selector: ({ id }) => id }), (events, how, resumed) => {
    const messages: NormalisedInput['messages'] = [
      { id: 'asked', role: 'assistant', toolCalls: resumed.map(({ wireId: id }) => ({ id, type: 'function', function: { name: 'search', arguments: '{}' } })) }
    ]
    const input: NormalisedInput = { threadId: 'thread', runId: 'run', protocolVersion: '1.0', messages, tools: [], context: [] }
    const told = project(events, how, { input, resumed, knownCalls: new Set(resumed.map(({ id }) => id)) }).map((line) => checkShape(JSON.parse(line)))
    checkOrder(told)
    for (const { id, wireId, isTold, result } of resumed) {
      const starts = told.filter((event) => event.type === 'TOOL_CALL_START' && event.toolCallId === wireId)
      const results = told.filter((event) => event.type === 'TOOL_CALL_RESULT' && event.toolCallId === wireId)
      if (starts.length > 0) throw new Error(`${id} is started again`)
      if (results.length > (isTold === true ? 0 : 1)) throw new Error(`${id} has ${results.length} results`)
      if (results.length === 0 && result !== undefined && isTold !== true && how === 'returned' && !JSON.stringify(told.at(-1)).includes(`"toolCallId":"${wireId}"`)) throw new Error(`${id} stays open`)
    }
  }), { numRuns: 2_000 })
  t.pass('for all of them')
})
