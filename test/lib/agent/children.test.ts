import t from 'tap'
import {
  type Agent, type AgentCapabilities, type AgentEvent, type AgentEventInit, type AgentInput, asTool, createRuntimeContext, defineTool, forward, RunInterrupted, runAgent, runTool, type RunToolOptions, type RuntimeContext, textAgent, type ToolOutcome, withSource
} from '../../../lib/agent/index.ts'
import { findViolations } from '../../helpers/well-formed.ts'

type Stream = (input: AgentInput, context: RuntimeContext) => AsyncGenerator<AgentEventInit, void, undefined>
const agentOf = (name: string, stream: Stream, capabilities: AgentCapabilities = {}): Agent => ({ name, description: `The ${name}`, capabilities, stream })
const empty: AgentInput = { messages: [], history: 'append' }

async function all (events: AsyncIterable<AgentEvent>): Promise<AgentEvent[]> {
  const list: AgentEvent[] = []
  for await (const event of events) list.push(event)
  t.strictSame(findViolations(list, { end: 'complete' }), [])
  return list
}

const outline = (events: AgentEvent[]): string[] => events.map((event) => `${event.source ?? ''} ${event.type}${'delta' in event ? ` ${event.delta}` : ''}${'state' in event ? ` ${event.state}` : ''}`.trim())

/** A parent that calls one tool and repeats what it gave. */
function parentOf (child: Agent, options: RunToolOptions & { input?: Record<string, string>, outcome?: (outcome: ToolOutcome) => void } = {}): Agent {
  const tool = asTool(child)
  return agentOf('parent', async function * (_, context) {
    const outcome = yield * runTool(tool, { id: 'c', name: tool.name, input: options.input ?? { prompt: 'go' } }, context, { announce: true, ...options })
    options.outcome?.(outcome)
  }, { denyRules: true })
}

t.test('an agent is a tool: its events come live under its path, its text is the result', async (t) => {
  let seen: unknown
  const child = agentOf('the helper', async function * (input, context) {
    seen = [input.messages.map(({ role, content }) => [role, content]), context.sessionId, context.userId, context.attributes.get('k')]
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'Hel' }
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'lo' }
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'inner', source: 'inner' }
  })
  const tool = asTool(child)
  t.match(tool, { name: 'the_helper', description: 'The the helper', parameters: { required: ['prompt'] } })
  const events = await all(runAgent(parentOf(child), empty, createRuntimeContext({ sessionId: 's', userId: 'u', attributes: [['k', 1]] })))
  t.strictSame(outline(events), [
    'AGENT_START', 'TOOL_CALL_START', 'TOOL_CALL_DELTA {"prompt":"go"}', 'TOOL_CALL_END', 'TOOL_RESULT_START',
    'the helper AGENT_START', 'the helper TEXT_BLOCK_START', 'the helper TEXT_BLOCK_DELTA Hel', 'the helper TEXT_BLOCK_DELTA lo',
    'the helper/inner AGENT_START', 'the helper/inner TEXT_BLOCK_START', 'the helper/inner TEXT_BLOCK_DELTA inner', 'the helper/inner TEXT_BLOCK_END', 'the helper/inner AGENT_END',
    'the helper TEXT_BLOCK_END', 'the helper AGENT_RESULT', 'the helper AGENT_END', 'TOOL_RESULT_TEXT_DELTA Hello', 'TOOL_RESULT_END success', 'AGENT_RESULT', 'AGENT_END'
  ])
  t.match(events[5], { metadata: { parentToolCallId: 'c' }, sessionId: 's#the helper' })
  t.strictSame(seen, [[['USER', [{ type: 'text', text: 'go' }]]], 's#the helper', 'u', 1])
})

t.test('two children at the same time have paths of their own', async (t) => {
  const tool = asTool(agentOf('kid', async function * (input) { yield { type: 'TEXT_BLOCK_DELTA', delta: 'x' } }))
  const context = createRuntimeContext({ sessionId: 's' })
  const runs = ['a', 'b'].map((id) => runTool(tool, { id, name: 'kid', input: { prompt: id } }, context))
  const sources = new Set<unknown>()
  for (let isDone = false; !isDone;) {
    const results = await Promise.all(runs.map((run) => run.next()))
    isDone = results.every(({ done }) => done)
    for (const { done, value } of results) if (done !== true && 'source' in value) sources.add(value.source)
  }
  t.strictSame([...sources], ['kid', 'kid-2'])
  const again = runTool(tool, { id: 'c', name: 'kid', input: { prompt: 'c' } }, context)
  await again.next()
  t.match(await again.next(), { value: { source: 'kid' } }, 'and a path is free again afterwards')
  await again.return({ kind: 'pending', pending: [], call: { type: 'tool_use', id: 'c', name: 'kid', input: {} } })
})

t.test('a call has the same child run whenever the same run makes it, and two calls of one id have two', async (t) => {
  const seen: string[] = []
  const tool = asTool(agentOf('kid', async function * (_, context) { seen.push(context.runId) }))
  for (const runId of ['r', 'r', 'q']) {
    const context = createRuntimeContext({ sessionId: 's', runId })
    for (const id of ['a', 'b', 'a']) {
      for await (const event of runTool(tool, { id, name: 'kid', input: { prompt: id } }, context)) t.ok(event)
    }
  }
  t.strictSame(seen, ['r#a', 'r#b', 'r#a-2', 'r#a', 'r#b', 'r#a-2', 'q#a', 'q#b', 'q#a-2'])
  // A child and its child may both call something `c`.
  seen.length = 0
  const inner = parentOf(agentOf('inner', async function * (_, context) { seen.push(context.runId) }))
  for await (const event of runAgent(parentOf(inner), empty, createRuntimeContext({ sessionId: 's', runId: 'r', denyRules: [] }))) t.ok(event)
  t.strictSame(seen, ['r#c#c'])
})

t.test('options name the tool, its path, its input, and who must approve', async (t) => {
  let messages: unknown
  const child = agentOf('kid', async function * (input) { messages = input.messages })
  const tool = asTool(child, {
    name: 'ask', description: 'Asks', parameters: { type: 'object' }, source: 'path', needsApproval: true, toMessages: (input) => [{ id: 'm', role: 'USER', content: [{ type: 'text', text: JSON.stringify(input) }] }]
  })
  t.match(tool, { name: 'ask', description: 'Asks', parameters: { type: 'object' }, needsApproval: true })
  const parent = agentOf('parent', async function * (_, context) {
    yield * runTool(tool, { id: 'c', name: 'ask', input: { q: 1 } }, context, { decision: { kind: 'confirm', toolCallId: 'c', approved: true } })
  })
  t.ok((await all(runAgent(parent, empty, createRuntimeContext({ sessionId: 's' })))).some(({ source }) => source === 'path'))
  t.match(messages, [{ content: [{ text: '{"q":1}' }] }])
  await all(runAgent(parentOf(child, { input: { other: 'x', prompt: 5 as never } }), empty, createRuntimeContext({ sessionId: 's' })))
  t.equal(asTool({ name: 'bare', stream: child.stream }).description, undefined)
})

t.test('an input without a prompt is handed over as JSON', async (t) => {
  let text: unknown
  const child = agentOf('kid', async function * (input) { text = input.messages[0]?.content })
  const tool = asTool(child, { parameters: { type: 'object' } })
  for await (const event of runTool(tool, { id: 'c', name: 'kid', input: { a: 1 } }, createRuntimeContext({ sessionId: 's' }))) t.ok(event)
  t.strictSame(text, [{ type: 'text', text: '{"a":1}' }])
})

t.test('a child that fails is an error for the parent\'s model', async (t) => {
  const child = agentOf('kid', async function * () {
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'half' }
    throw new Error('broken')
  })
  const events = await all(runAgent(parentOf(child), empty, createRuntimeContext({ sessionId: 's' })))
  t.strictSame(outline(events).slice(5), [
    'kid AGENT_START', 'kid TEXT_BLOCK_START', 'kid TEXT_BLOCK_DELTA half', 'kid TEXT_BLOCK_END', 'kid AGENT_END', 'TOOL_RESULT_TEXT_DELTA Error: broken', 'TOOL_RESULT_END error', 'AGENT_RESULT', 'AGENT_END'
  ])
  t.match(events.find(({ type, source }) => type === 'AGENT_END' && source === 'kid'), { metadata: { error: 'internal_error' } })
})

t.test('an abort reaches the child, and ends both', async (t) => {
  const controller = new AbortController()
  const reason = new RunInterrupted('user')
  let seen: unknown
  const child = agentOf('kid', async function * (_, { signal }) {
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'half' }
    controller.abort(reason)
    seen = signal.reason
    throw signal.reason
  })
  const events = await all(runAgent(parentOf(child), empty, createRuntimeContext({ sessionId: 's', signal: controller.signal })))
  t.equal(seen, reason)
  t.strictSame(outline(events).slice(8), ['kid TEXT_BLOCK_END', 'kid AGENT_RESULT', 'kid AGENT_END', 'TOOL_RESULT_END interrupted', 'AGENT_RESULT', 'AGENT_END'])
  t.match(events.at(-1), { reason: 'INTERRUPTED' })
})

t.test('deny rules bind the child: one that knows none is not run', async (t) => {
  const denyRules = [{ tool_name: 'rm', behavior: 'deny' }] as const
  const context = createRuntimeContext({ sessionId: 's', denyRules })
  const unaware = await all(runAgent(parentOf(agentOf('kid', async function * () { t.fail('run') })), empty, context))
  t.ok(outline(unaware).includes('TOOL_RESULT_TEXT_DELTA Error: kid cannot keep to the deny rules of this run.'))
  const aware = agentOf('kid', async function * (_, child) {
    yield * runTool(defineTool({ name: 'rm', execute: () => t.fail('executed') }), { id: 'x', name: 'rm', input: {} }, child, { announce: true })
  }, { denyRules: true })
  t.ok(outline(await all(runAgent(parentOf(aware), empty, context))).includes('kid TOOL_RESULT_END denied'))
})

t.test('a child\'s pause is asked at the root, and its answer finds the child', async (t) => {
  const inputs: AgentInput[] = []
  const outcomes: ToolOutcome[] = []
  const write = defineTool({ name: 'write', needsApproval: true, execute: () => 'written' })
  const child = agentOf('kid', async function * (input, context) {
    inputs.push(input)
    const [decision] = input.resume ?? []
    const outcome = yield * runTool(write, { id: 'w', name: 'write', input: { path: 'a' } }, context, { announce: decision === undefined, ...decision?.kind === 'confirm' && { decision } })
    if (outcome.kind === 'done') yield { type: 'TEXT_BLOCK_DELTA', delta: 'done' }
  }, { resume: true })
  const paused = await all(runAgent(parentOf(child, { outcome: (outcome) => { outcomes.push(outcome) } }), empty, createRuntimeContext({ sessionId: 's' })))
  t.strictSame(outline(paused).slice(5), [
    'kid AGENT_START', 'kid TOOL_CALL_START', 'kid TOOL_CALL_DELTA {"path":"a"}', 'kid TOOL_CALL_END', 'kid REQUIRE_USER_CONFIRM', 'kid AGENT_RESULT', 'kid AGENT_END',
    'TOOL_RESULT_TEXT_DELTA kid waits for an answer.', 'TOOL_RESULT_END running', 'TOOL_CALL_START', 'TOOL_CALL_DELTA {"path":"a"}', 'TOOL_CALL_END', 'REQUIRE_USER_CONFIRM', 'AGENT_RESULT', 'AGENT_END'
  ])
  t.match(paused.at(-1), { reason: 'PERMISSION_ASKING' })
  t.match(outcomes, [{ kind: 'pending', pending: [{ kind: 'confirm', toolCall: { id: 'w', name: 'write', state: 'asking' } }] }])
  const resume = [{ kind: 'confirm', toolCallId: 'w', approved: true }] as const
  const resumed = await all(runAgent(parentOf(child, { announce: false, resume: [...resume] }), empty, createRuntimeContext({ sessionId: 's' })))
  t.strictSame(inputs[1], { messages: [], history: 'append', resume })
  t.ok(outline(resumed).includes('TOOL_RESULT_TEXT_DELTA done'))
})

t.test('a child that cannot be resumed reports why it stopped', async (t) => {
  const child = agentOf('kid', async function * () {
    yield { type: 'REQUIRE_INPUT', requests: [{ id: 'q', reason: 'login' }] }
    yield { type: 'REQUIRE_EXTERNAL_EXECUTION', toolCalls: [{ type: 'tool_use', id: 'x', name: 'scan', input: {} }] }
  })
  const events = await all(runAgent(parentOf(child), empty, createRuntimeContext({ sessionId: 's' })))
  t.ok(outline(events).includes('TOOL_RESULT_TEXT_DELTA Error: kid stopped: it needs an answer that it cannot get here (login, scan).'))
  t.ok(outline(events).includes('kid REQUIRE_INPUT'), 'the pause itself is visible')
  t.match(events.at(-1), { reason: 'MODEL_STOP' })
})

t.test('forwarding puts a path before what is there', async (t) => {
  async function * child (): AsyncGenerator<AgentEventInit, void, undefined> {
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'a' }
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'b', source: 'inner/most' }
  }
  const sources: unknown[] = []
  for await (const event of forward(child(), 'outer')) sources.push(event.source)
  t.strictSame(sources, ['outer', 'outer/inner/most'])
  t.strictSame(withSource({ type: 'AGENT_END', source: '' }, 'a'), { type: 'AGENT_END', source: 'a' })
})

t.test('a text agent is a function that returns or yields its answer', async (t) => {
  const replies = { whole: () => 'Hello', promised: async () => 'Hello', pieces: async function * () { yield 'Hel'; yield 'lo' }, array: () => ['Hel', 'lo'], later: async () => ['Hel', '', 'lo'] }
  for (const [name, reply] of Object.entries(replies)) {
    const agent = textAgent(reply)
    t.equal(agent.name, name)
    const events = await all(runAgent(agent, empty, createRuntimeContext({ sessionId: 's' })))
    t.equal(events.flatMap((event) => event.type === 'TEXT_BLOCK_DELTA' ? [event.delta] : []).join(''), 'Hello')
  }
  t.match(textAgent(() => '', { name: 'n', description: 'd', capabilities: { resume: true } }), { name: 'n', description: 'd', capabilities: { resume: true } })
  t.equal(textAgent(() => '').name, 'agent')
})
