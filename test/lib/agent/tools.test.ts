import { Type } from '@sinclair/typebox'
import t from 'tap'
import {
  AgentError, type AgentEvent, type AgentEventInit, createRuntimeContext, defineTool, mergeTools, Normaliser, parseToolMergeMode, type PermissionRule, RunInterrupted, runTool, type RunToolOptions, type Tool, type ToolCall, type ToolOutcome,
  ToolSuspended, type ToolMergeModeName, validateJson
} from '../../../lib/agent/index.ts'
import { findViolations } from '../../helpers/well-formed.ts'

const add = defineTool({ name: 'add', description: 'Adds', parameters: Type.Object({ a: Type.Number(), b: Type.Number() }), execute: ({ a, b }) => `${a + b}` })
const call: ToolCall = { id: 'c', name: 'add', input: { a: 1, b: 2 } }

interface Told { readonly lines: string[], readonly events: AgentEventInit[], readonly outcome?: ToolOutcome, readonly error?: unknown }

/** Runs a tool, and checks that its events are well formed as they are. */
async function told (tool: Tool | undefined, options: RunToolOptions & { call?: ToolCall, denyRules?: PermissionRule[], signal?: AbortSignal } = {}): Promise<Told> {
  const runtime = createRuntimeContext({ sessionId: 's', denyRules: options.denyRules, signal: options.signal })
  const events: AgentEventInit[] = []
  const running = runTool(tool, options.call ?? call, runtime, options)
  let outcome: ToolOutcome | undefined
  let error: unknown
  try {
    for (let result = await running.next(); ; result = await running.next()) {
      if (result.done === true) {
        outcome = result.value
        break
      }
      events.push(result.value)
    }
  } catch (thrown) {
    error = thrown
  }
  const all: AgentEvent[] = []
  const normaliser = new Normaliser({ agentName: 'a', sessionId: 's', knownCalls: new Set(['c']) })
  for (const event of events) normaliser.push(event, (event) => all.push(event))
  normaliser.end({ kind: 'returned' }, (event) => all.push(event))
  const violations = findViolations(all, { end: 'complete', knownCalls: new Set(['c']) })
  if (violations.length > 0) throw new Error(violations.join('\n'))
  const lines = events.map((event) => [event.type, 'delta' in event ? event.delta : '', 'state' in event ? event.state : ''].filter(Boolean).join(' '))
  return { lines, events, ...outcome && { outcome }, ...error !== undefined && { error } }
}

t.test('a tool is a definition for a model, its schema plain JSON', async (t) => {
  t.strictSame(JSON.parse(JSON.stringify(add)), { name: 'add', description: 'Adds', parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] } })
  t.strictSame(Object.getOwnPropertySymbols(add.parameters ?? {}), [])
  t.throws(() => defineTool({ name: ' ' }), TypeError)
  t.throws(() => defineTool({ name: '__finish' }), TypeError)
  const parameters = { type: 'object' }
  t.equal(defineTool({ name: 'x', parameters }).parameters, parameters)
})

t.test('a call runs from the start of its result to its end', async (t) => {
  const { lines, outcome } = await told(add)
  t.strictSame(lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA 3', 'TOOL_RESULT_END success'])
  t.strictSame(outcome, { kind: 'done', state: 'success', output: [{ type: 'text', text: '3' }], call: { type: 'tool_use', id: 'c', name: 'add', input: { a: 1, b: 2 }, content: '{"a":1,"b":2}', metadata: {}, state: 'finished' } })
})

t.test('the call itself is told on request, with the step of its reply', async (t) => {
  const { lines, events } = await told(add, { announce: true, replyId: 'r', call: { id: 'c', name: 'add', content: '{"a":1, "b":2}', metadata: { m: 1 } } })
  t.strictSame(lines, ['TOOL_CALL_START', 'TOOL_CALL_DELTA {"a":1, "b":2}', 'TOOL_CALL_END', 'TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA 3', 'TOOL_RESULT_END success'])
  t.ok(events.every((event) => 'replyId' in event && event.replyId === 'r'))
})

t.test('an unknown tool, a wrong input and a tool that throws are results for the model', async (t) => {
  t.strictSame((await told(undefined)).lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA There is no tool named add.', 'TOOL_RESULT_END error'])
  t.match((await told(add, { call: { ...call, input: { a: 'x', b: 2 } } })).lines, ['TOOL_RESULT_START', /Invalid arguments at \/a: /, 'TOOL_RESULT_END error'])
  t.match((await told(add, { call: { id: 'c', name: 'add' } })).lines, ['TOOL_RESULT_START', /Invalid arguments/, 'TOOL_RESULT_END error'])
  const thrown = [[new Error('disk full'), 'Error: disk full'], ['text', 'Error: text'], [new AgentError({ code: 'x', message: 'secret' }), 'Error: The agent failed.'], [new AgentError({ code: 'x', message: 'shown', expose: true }), 'Error: shown']] as const
  for (const [error, text] of thrown) {
    t.strictSame((await told(defineTool({ name: 'add', execute: () => { throw error } }))).lines, ['TOOL_RESULT_START', `TOOL_RESULT_TEXT_DELTA ${text}`, 'TOOL_RESULT_END error'])
  }
})

t.test('output may be text, blocks, any JSON, or nothing', async (t) => {
  const image = { type: 'image', source: { type: 'url', url: 'http://x/' } } as const
  const outputs = [['a', ['TOOL_RESULT_TEXT_DELTA a']], ['', []], [undefined, []], [{ a: 1 }, ['TOOL_RESULT_TEXT_DELTA {"a":1}']], [[1], ['TOOL_RESULT_TEXT_DELTA [1]']], [[], ['TOOL_RESULT_TEXT_DELTA []']], [null, ['TOOL_RESULT_TEXT_DELTA null']], [(() => 1) as never, []],
    [[{ type: 'text', text: 'b' }, image], ['TOOL_RESULT_TEXT_DELTA b', 'TOOL_RESULT_DATA_DELTA']]] as const
  for (const [output, expected] of outputs) t.strictSame((await told(defineTool({ name: 'add', execute: async () => output }))).lines, ['TOOL_RESULT_START', ...expected, 'TOOL_RESULT_END success'])
})

t.test('a tool may yield its text in pieces, and events', async (t) => {
  const { lines, outcome } = await told(defineTool({
    name: 'add',
    async * execute (_, { toolCallId }) {
      yield 'one '
      yield { type: 'CUSTOM', name: 'tool_progress', value: { toolCallId, output: 50 } }
      yield 'two'
      return ' three'
    }
  }))
  t.strictSame(lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA one ', 'CUSTOM', 'TOOL_RESULT_TEXT_DELTA two', 'TOOL_RESULT_TEXT_DELTA  three', 'TOOL_RESULT_END success'])
  t.match(outcome, { output: [{ text: 'one ' }, { text: 'two' }, { text: ' three' }] })
})

t.test('a streaming tool that throws has told what it said; one that is left is ended', async (t) => {
  t.strictSame((await told(defineTool({ name: 'add', async * execute () { yield 'half'; throw new Error('broken') } }))).lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA half', 'TOOL_RESULT_TEXT_DELTA Error: broken', 'TOOL_RESULT_END error'])
  let isClosed = false
  const tool = defineTool({ name: 'add', async * execute () { try { yield 'a'; yield 'b' } finally { isClosed = true } } })
  for await (const event of runTool(tool, call, createRuntimeContext({ sessionId: 's' }))) if (event.type === 'TOOL_RESULT_TEXT_DELTA') break
  t.equal(isClosed, true)
  const bare = defineTool({ name: 'add', execute: () => ({ next: async () => ({ done: false, value: 'x' }), [Symbol.asyncIterator] () { return this } }) })
  for await (const event of runTool(bare, call, createRuntimeContext({ sessionId: 's' }))) if (event.type === 'TOOL_RESULT_TEXT_DELTA') break
})

t.test('a tool that needs approval asks first, and runs with what was approved', async (t) => {
  const tool = defineTool({ name: 'add', parameters: Type.Object({ a: Type.Number(), b: Type.Number() }), needsApproval: ({ a }) => a > 0, execute: ({ a, b }) => `${a + b}` })
  const asked = await told(tool, { replyId: 'r' })
  const toolCall = { type: 'tool_use', id: 'c', name: 'add', input: { a: 1, b: 2 }, content: '{"a":1,"b":2}', metadata: {}, state: 'asking' } as const
  t.strictSame(asked.events, [{ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [toolCall] }])
  t.strictSame(asked.outcome, { kind: 'pending', pending: [{ kind: 'confirm', replyId: 'r', toolCall }], call: toolCall })
  t.strictSame((await told(tool, { call: { ...call, input: { a: 0, b: 1 } } })).lines.at(-1), 'TOOL_RESULT_END success')
  const edited = await told(tool, { decision: { kind: 'confirm', toolCallId: 'c', approved: true, toolCall: { ...toolCall, input: { a: 5, b: 5 }, content: '{"a":5,"b":5}' } } })
  t.strictSame(edited.lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA 10', 'TOOL_RESULT_END success'])
  t.match(edited.outcome, { call: { input: { a: 5, b: 5 }, content: '{"a":5,"b":5}' } })
  t.match((await told(tool, { decision: { kind: 'confirm', toolCallId: 'c', approved: true } })).lines, { 1: 'TOOL_RESULT_TEXT_DELTA 3' })
})

t.test('a refusal never runs the tool, and tells its reason', async (t) => {
  const tool = defineTool({ name: 'add', needsApproval: true, execute: () => t.fail('executed') })
  t.strictSame((await told(tool, { decision: { kind: 'confirm', toolCallId: 'c', approved: false, reason: 'wrong folder' } })).lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA wrong folder', 'TOOL_RESULT_END denied'])
  t.strictSame((await told(tool, { decision: { kind: 'confirm', toolCallId: 'c', approved: false } })).lines[1], 'TOOL_RESULT_TEXT_DELTA Permission denied by user')
})

t.test('deny rules are asked before the tool runs, and again after its arguments were edited', async (t) => {
  const tool = defineTool({ name: 'add', needsApproval: true, execute: () => t.fail('executed') })
  const denyRules = [{ tool_name: 'add', rule_content: 'secret*', behavior: 'deny' }] as PermissionRule[]
  const denied = ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA Permission denied by rules', 'TOOL_RESULT_END denied']
  t.strictSame((await told(tool, { denyRules, call: { ...call, input: { path: 'secret.txt' } } })).lines, denied)
  t.strictSame((await told(tool, { denyRules, decision: { kind: 'confirm', toolCallId: 'c', approved: true, toolCall: { type: 'tool_use', id: 'c', name: 'add', input: { path: 'secret.txt' } } } })).lines, denied)
})

t.test('a tool without execute, and one that suspends itself, wait for somebody else', async (t) => {
  const outside = await told(defineTool({ name: 'add' }))
  t.strictSame(outside.lines, ['REQUIRE_EXTERNAL_EXECUTION'])
  t.match(outside.outcome, { kind: 'pending', pending: [{ kind: 'external', toolCall: { id: 'c', state: 'pending' } }] })
  const suspended = await told(defineTool({ name: 'add', execute: () => { throw new ToolSuspended() } }))
  t.strictSame(suspended.lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA [Awaiting external execution]', 'TOOL_RESULT_END running', 'REQUIRE_EXTERNAL_EXECUTION'])
  t.match(suspended.events[2], { metadata: { agentscope_suspended: true } })
  const pending = [{ kind: 'input', replyId: 'k', request: { id: 'q', reason: 'login' } }, { kind: 'external', replyId: 'k', toolCall: { type: 'tool_use', id: 'x', name: 'x', input: {} } }] as const
  const raised = await told(defineTool({ name: 'add', execute: () => { throw new ToolSuspended('Who are you?', pending) } }))
  t.strictSame(raised.lines, ['TOOL_RESULT_START', 'TOOL_RESULT_TEXT_DELTA Who are you?', 'TOOL_RESULT_END running', 'REQUIRE_INPUT', 'REQUIRE_EXTERNAL_EXECUTION'])
  t.match(raised.outcome, { kind: 'pending', pending })
})

t.test('an abort ends the result as interrupted and is thrown on', async (t) => {
  const controller = new AbortController()
  const reason = new RunInterrupted('user')
  const tool = defineTool({ name: 'add', execute: (_, { signal }) => { controller.abort(reason); signal.throwIfAborted() } })
  const { lines, error } = await told(tool, { signal: controller.signal })
  t.strictSame(lines, ['TOOL_RESULT_START', 'TOOL_RESULT_END interrupted'])
  t.equal(error, reason)
})

t.test('a schema is checked in its own draft, copied, and no obstacle when it is broken', async (t) => {
  const schema = Object.freeze({ type: 'object', properties: Object.freeze({ n: Object.freeze({ type: 'integer', minimum: 1 }) }) })
  t.equal(validateJson(schema, { n: 1 }), undefined)
  t.match(validateJson(schema, { n: 0 }), /^\/n: /)
  t.match(validateJson({ type: 'object' }, 5), /^\/: /)
  t.strictSame(Object.keys(schema), ['type', 'properties'])
  const drafts = [['http://json-schema.org/draft-04/schema#', 4], ['http://json-schema.org/draft-06/schema#', 6], ['http://json-schema.org/draft-07/schema#', 7], ['https://json-schema.org/draft/2019-09/schema', 2019], ['https://json-schema.org/draft/2020-12/schema', 2020]] as const
  for (const [$schema] of drafts) t.ok(validateJson({ $schema, type: 'string' }, 5))
  t.equal(validateJson({ $ref: '#/nowhere' }, 5), undefined)
  t.equal(validateJson({ type: 'string', pattern: '(' }, 'x'), undefined)
  const cyclic: Record<string, unknown> = {}
  cyclic.not = cyclic
  t.equal(validateJson(cyclic as never, 5), undefined)
})

t.test('merge modes under all their names', async (t) => {
  const own = [{ name: 'own' }, { name: 'both', description: 'own' }]
  const request = [{ name: 'both', description: 'request', parameters: { type: 'object' } }, { name: 'theirs' }]
  const merged = (mode: ToolMergeModeName | null | undefined): object => {
    const { tools, clientTools, agentTools, skipped } = mergeTools(mode, own, request)
    return { tools: tools.map(({ name, description }) => description === undefined ? name : `${name} ${description}`), client: [...clientTools], agent: agentTools.map(({ name }) => name), skipped }
  }
  const external = { tools: ['both request', 'theirs'], client: ['both', 'theirs'], agent: [], skipped: [] }
  const agent = { tools: ['own', 'both own'], client: [], agent: ['own', 'both'], skipped: [] }
  const both = { tools: ['own', 'both request', 'theirs'], client: ['both', 'theirs'], agent: ['own'], skipped: [] }
  for (const mode of ['EXTERNAL_ONLY', 'FRONTEND_ONLY', 'client-only'] as const) t.strictSame(merged(mode), external)
  for (const mode of ['AGENT_ONLY', 'agent-only'] as const) t.strictSame(merged(mode), agent)
  for (const mode of ['MERGE_EXTERNAL_PRIORITY', 'MERGE_FRONTEND_PRIORITY', 'merge', null, undefined] as const) t.strictSame(merged(mode), both)
  t.strictSame(merged('MERGE_AGENT_PRIORITY'), { tools: ['own', 'both own', 'theirs'], client: ['theirs'], agent: ['own', 'both'], skipped: [{ name: 'both', reason: 'shadowed' }] })
  t.strictSame(mergeTools('EXTERNAL_ONLY', own).tools, [], 'an empty request leaves none')
  t.strictSame(own, [{ name: 'own' }, { name: 'both', description: 'own' }], 'the agent\'s own list stays')
})

t.test('tools of a request with reserved, repeated or unusable definitions are skipped', async (t) => {
  const { tools, skipped } = mergeTools('merge', [{ name: 'own' }], [{ name: '__x' }, { name: 'a' }, { name: 'a' }, { name: 'b', parameters: { type: 'string' } }, { name: 'c', parameters: [] as never }, { name: 'd', parameters: null as never }, { name: 'e', parameters: {} }])
  t.strictSame(tools.map(({ name }) => name), ['own', 'a', 'd', 'e'])
  t.strictSame(skipped, [{ name: '__x', reason: 'reserved-name' }, { name: 'a', reason: 'duplicate' }, { name: 'b', reason: 'no-object-schema' }, { name: 'c', reason: 'no-object-schema' }])
})

t.test('mode names are parsed, others are none', async (t) => {
  t.equal(parseToolMergeMode('FRONTEND_ONLY'), 'EXTERNAL_ONLY')
  for (const name of ['frontend_only', 'toString', '', null, 5]) t.equal(parseToolMergeMode(name), undefined)
})
