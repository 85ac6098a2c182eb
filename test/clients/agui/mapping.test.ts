import { EventSchemas } from 'agui-core-1/schemas'
import fc from 'fast-check'
import t from 'tap'
import { type MappingOptions } from '../../../plugins/ag-ui/config.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { clients } from './clients.ts'
import { agentEvents, ends, project } from './streams.ts'

const messages: NormalisedInput['messages'] = [
  { id: 'u1', role: 'user', content: 'Hi' },
  { id: 'a1', role: 'assistant', toolCalls: [{ id: 'call-0', type: 'function', function: { name: 'search', arguments: '{}' } }] },
  { id: 'x1', role: 'tool', toolCallId: 'call-0', content: 'found' },
  { id: 'r1', role: 'assistant', content: 'An earlier run used this id.' }
]

function inputFor (version: string): NormalisedInput {
  return {
    threadId: 'thread',
    runId: 'run',
    messages,
    tools: [{ name: 'paint', description: '' }],
    context: [],
    state: {},
    ...version === '1.0.0' && { protocolVersion: '1.0' }
  }
}

const options = fc.record<MappingOptions>({
  enableReasoning: fc.boolean(),
  emitTokenUsage: fc.boolean(),
  emitToolCallArgs: fc.boolean(),
  mapExtras: fc.constantFrom('raw', 'custom'),
  subagentEvents: fc.constantFrom('custom', 'flatten'),
  baseEventPropertiesEnricherEnabled: fc.boolean(),
  frontendToolOutcome: fc.constantFrom('success', 'interrupt'),
  legacyCancel: fc.constantFrom('error', 'finished'),
  echoInput: fc.boolean()
})

for (const client of clients) {
  t.test(`whatever an agent yields, client ${client.version} takes the stream without a word`, async (t) => {
    await fc.assert(fc.asyncProperty(agentEvents, ends, options, async (events, end, chosen) => {
      const lines = project(events, end, { input: inputFor(client.version) }, chosen)
      if (client.version === '1.0.0') {
        for (const line of lines) {
          const result = EventSchemas.safeParse(JSON.parse(line))
          if (!result.success) throw new Error(`${line}: ${result.error.message}`)
        }
      }
      const terminals = lines.filter((line) => /^\{"type":"RUN_(FINISHED|ERROR)"/.test(line))
      if (terminals.length !== 1 || lines.at(-1) !== terminals[0]) throw new Error(`terminals: ${terminals.join()}`)
      const { warnings } = await client.watch(lines, { messages })
      if (warnings.length > 0) throw new Error(`warned: ${JSON.stringify(warnings)}`)
    }), { numRuns: 200 })
    t.pass('200 streams')
  })
}
