import t from 'tap'
import { accumulate, createRuntimeContext, pendingOf, runAgent, textOf, usageOf, type AgentEvent, type AgentInput, type Msg } from 'fastify-agents/agent'
import { guide, PICK_COLOUR } from '../../examples/agents/guide.ts'

const TOOL = { name: PICK_COLOUR, description: 'Picks.', parameters: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] } }

function user (text: string): Msg {
  return { id: 'u', role: 'USER', content: [{ type: 'text', text }] }
}

async function run (messages: Msg[], tools: NonNullable<AgentInput['tools']>['definitions'] = []): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  const input: AgentInput = { messages, history: 'replace', tools: { mode: 'MERGE_EXTERNAL_PRIORITY', definitions: tools } }
  for await (const event of runAgent(guide({ wordMs: 0 }), input, createRuntimeContext({ sessionId: 's' }))) events.push(event)
  return events
}

t.test('the guide thinks, and explains at length', async (t) => {
  const events = await run([user('Give me the tour')])
  t.match(textOf(accumulate(events)), /^You are watching server-sent events\.[^]*Say "paint the page", and I will\.$/)
  t.ok(events.some(({ type }) => type === 'THINKING_BLOCK_DELTA'))
  const { inputTokens, outputTokens } = usageOf(events) ?? {}
  t.equal(inputTokens, 4)
  t.ok(Number(outputTokens) > 150)
})

t.test('the guide asks the page for a colour, and tells what it got', async (t) => {
  const asking = await run([user('Paint the page')], [TOOL])
  t.strictSame(pendingOf(asking).map((pending) => pending.kind === 'external' ? [pending.toolCall.name, pending.toolCall.input] : pending.kind),
    [[PICK_COLOUR, { question: 'Which colour shall this page have?' }]])
  for (const [state, said, answer] of [['success', 'teal', 'The page is teal now.'], ['error', 'nobody chose', 'The page stays as it is: nobody chose']] as const) {
    const result: Msg = { id: 't', role: 'TOOL', content: [{ type: 'tool_result', id: 'c', name: PICK_COLOUR, output: [{ type: 'text', text: said }], state }] }
    t.equal(textOf(accumulate(await run([user('Paint the page'), result], [TOOL]))), answer)
  }
})

t.test('the guide says so when the page has no such tool', async (t) => {
  t.match(textOf(accumulate(await run([user('A colour, please')]))), /offers me no tool/)
})
