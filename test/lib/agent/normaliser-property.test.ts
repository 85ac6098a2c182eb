import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { type Agent, type AgentEvent, type AgentEventInit, agentEventSchemas, createRuntimeContext, decodeEvent, encodeEvent, Normaliser, type Repair, RunInterrupted, runAgent, textOf, usageOf } from '../../../lib/agent/index.ts'
import { findViolations } from '../../helpers/well-formed.ts'

// Small alphabets, so that ids meet; every member may be missing, null or of a wrong type.
const id = (...ids: string[]): fc.Arbitrary<unknown> => fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...ids) }, { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom('', null, 7, {}, '\ud800') })
const text = fc.oneof(fc.constantFrom('a', ' ', '', '\ud83d', '\ude00', 'x\ud83d', '\ude00!', '{"a":1}', '{"a":', '1}', 'é ✓ 😀'), fc.string({ unit: 'binary' }),
  fc.constantFrom(null, undefined, 5, {}))
const source = fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 3, arbitrary: fc.constantFrom('kid', 'kid/inner', 'other') },
  { weight: 1, arbitrary: fc.constantFrom('', null, 3) })
const anything = fc.oneof(fc.jsonValue(), fc.constantFrom(undefined, Symbol('s'), 10n, () => 1, NaN, new Date(0), new Map(), cyclic(), JSON.parse('{"__proto__":{"x":1},"y":2}'), throwing()))
const json = fc.oneof(fc.dictionary(fc.string(), anything, { maxKeys: 3 }), anything)
const toolUse = fc.record({ type: fc.constantFrom('tool_use', 'tool_use', 'text', null), id: id('c1', 'c2', 'c3'), name: id('add', '__inner'), input: json, content: text, state: fc.constantFrom('asking', 'ASKING', undefined, 9) }, { requiredKeys: [] })
const block = fc.oneof(toolUse, fc.record({ type: fc.constant('text'), text }), fc.record({ type: fc.constant('tool_result'), id: id('c1'), output: json }), anything)
const usage = fc.oneof(fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat() }), anything)
const envelope = { source, metadata: fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, json), id: fc.constantFrom(undefined, undefined, 'own', 5, ''), createdAt: fc.constantFrom(undefined, '2026-01-01T00:00:00.123456789Z', 'yesterday', null) }
const step = { ...envelope, replyId: id('r1', 'r2') }
const blockNames = { ...step, blockId: id('b1', 'text') }
const callNames = { ...step, toolCallId: id('c1', 'c2', 'c3'), toolCallName: id('add', '__inner') }
const event = (types: string[], members: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> =>
  fc.record({ type: fc.constantFrom(...types), ...members }, { requiredKeys: ['type'] })

const wild = fc.oneof(
  { weight: 6, arbitrary: event(['TEXT_BLOCK_START', 'TEXT_BLOCK_END', 'THINKING_BLOCK_START', 'THINKING_BLOCK_END', 'DATA_BLOCK_START', 'DATA_BLOCK_END'], { ...blockNames, mediaType: id('image/png'), url: id('http://x/') }) },
  { weight: 8, arbitrary: event(['TEXT_BLOCK_DELTA', 'THINKING_BLOCK_DELTA', 'DATA_BLOCK_DELTA'], { ...blockNames, delta: text }) },
  { weight: 6, arbitrary: event(['TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_RESULT_START', 'TOOL_RESULT_END'], { ...callNames, state: fc.constantFrom('success', 'ERROR', 'running', undefined, 'odd', 1), executor: fc.constantFrom('client', undefined, 3) }) },
  { weight: 6, arbitrary: event(['TOOL_CALL_DELTA', 'TOOL_RESULT_TEXT_DELTA'], { ...callNames, delta: text }) },
  { weight: 1, arbitrary: event(['TOOL_RESULT_DATA_DELTA'], { ...callNames, data: block }) },
  { weight: 3, arbitrary: event(['MODEL_CALL_START', 'MODEL_CALL_END'], { ...step, usage, model: id('m') }) },
  { weight: 2, arbitrary: event(['REQUIRE_USER_CONFIRM', 'REQUIRE_EXTERNAL_EXECUTION', 'ALL_TOOLS_DENIED'], { ...step, toolCalls: fc.oneof(fc.array(block, { maxLength: 3 }), anything), deniedToolCalls: fc.array(block, { maxLength: 2 }) }) },
  { weight: 1, arbitrary: event(['REQUIRE_INPUT'], { ...step, requests: fc.array(fc.oneof(fc.record({ id: id('q1', 'q2'), reason: id('login') }), anything), { maxLength: 3 }) }) },
  { weight: 1, arbitrary: event(['USER_CONFIRM_RESULT', 'EXTERNAL_EXECUTION_RESULT'], { ...step, confirmResults: fc.array(fc.record({ confirmed: fc.constantFrom(true, false, 1), toolCall: toolUse, rules: json }), { maxLength: 2 }), toolResults: fc.array(block, { maxLength: 2 }) }) },
  { weight: 1, arbitrary: event(['AGENT_START', 'AGENT_RESULT'], { ...step, sessionId: id('s'), name: id('n'), result: fc.oneof(fc.record({ id: id('m'), role: id('assistant', 'USER'), content: fc.oneof(fc.array(block), text), metadata: json, usage }), anything) }) },
  { weight: 1, arbitrary: event(['AGENT_END', 'REQUEST_STOP'], { ...envelope, source: fc.constantFrom('kid', 'kid', 'kid/inner', undefined), reason: id('MODEL_STOP', 'x'), generateReason: id('PERMISSION_ASKING') }) },
  { weight: 1, arbitrary: event(['CUSTOM', 'HINT_BLOCK', 'EXCEED_MAX_ITERS', 'SUBAGENT_EXPOSED'], { ...blockNames, name: id('usage', 'x'), value: json, hint: text, maxIters: fc.nat(), currentIter: fc.nat(), subagentId: id('a'), agentId: id('a'), sessionId: id('s') }) },
  { weight: 1, arbitrary: fc.oneof(anything, event(['RUN_STARTED', 'toString', '__proto__'], step)) })

t.test('whatever an agent emits and however it ends, the stream is well formed', async () => {
  fc.assert(fc.property(fc.array(wild, { maxLength: 60 }), fc.constantFrom('returned', 'interrupted', 'failed'), fc.boolean(), (yielded, kind, isResumed) => {
    const knownCalls = new Set(isResumed ? ['c1'] : [])
    const events: AgentEvent[] = []
    const normaliser = new Normaliser({ agentName: 'agent', sessionId: 'session', knownCalls })
    const emit = (event: AgentEvent): void => { events.push(event) }
    for (const event of yielded) normaliser.push(event, emit)
    normaliser.end({ kind }, emit)
    normaliser.end({ kind: 'returned' }, emit)
    normaliser.push({ type: 'TEXT_BLOCK_DELTA', delta: 'late' }, emit)
    const violations = findViolations(events, { end: kind === 'failed' ? 'failed' : 'complete', knownCalls })
    if (violations.length > 0) throw new Error(violations.join('\n'))
  }), { numRuns: 1500 })
})

t.test('a well-formed stream passes unchanged, and repairs nothing', async () => {
  fc.assert(fc.property(fc.array(wild, { maxLength: 40 }), (yielded) => {
    const first = run(yielded)
    const repairs: Repair[] = []
    const second = run(first, repairs)
    assert.deepStrictEqual(repairs, [])
    assert.deepStrictEqual(second, first)
  }), { numRuns: 300 })
})

t.test('text, usage and result say what was streamed', async () => {
  const delta = event(['TEXT_BLOCK_DELTA', 'TEXT_BLOCK_START', 'TEXT_BLOCK_END', 'MODEL_CALL_END'], {
    replyId: id('r1', 'r2'), blockId: id('b1', 'b2'), source: fc.constantFrom(undefined, undefined, 'kid'), delta: text, usage
  })
  fc.assert(fc.property(fc.array(delta, { maxLength: 40 }), (yielded) => {
    const events = run(yielded)
    const texts = new Map<string, string>()
    for (const event of events) {
      if ((event.type === 'TEXT_BLOCK_START' || event.type === 'TEXT_BLOCK_DELTA') && event.source === undefined) {
        const key = `${event.replyId} ${event.blockId}`
        texts.set(key, (texts.get(key) ?? '') + (event.type === 'TEXT_BLOCK_DELTA' ? event.delta : ''))
      }
    }
    const result = events.at(-2)
    assert.equal(result?.type === 'AGENT_RESULT' && textOf(result.result), [...texts.values()].filter((text) => text !== '').join('\n'))
    const tokens = events.reduce((sum, event) => event.type === 'MODEL_CALL_END' ? sum + (event.usage?.inputTokens ?? 0) : sum, 0)
    assert.equal(usageOf(events)?.inputTokens ?? 0, tokens)
  }), { numRuns: 300 })
})

t.test('what is told survives the wire, with nulls, a second type and other cases too', async () => {
  fc.assert(fc.property(fc.array(wild, { maxLength: 30 }), (yielded) => {
    for (const told of run(yielded)) {
      assert.deepStrictEqual(decodeEvent(encodeEvent(told)), told)
      // Foreign members of the same name as another type's own are none of ours.
      const own = agentEventSchemas[told.type].properties
      const event = Object.fromEntries(Object.entries(told).filter(([key]) => key in own)) as AgentEvent
      const json = encodeEvent(event)
      const java = JSON.parse(json, inUpperCase) as Record<string, unknown>
      const { type, ...rest } = java
      assert.deepStrictEqual(decodeEvent(`{"type":"${event.type}",${JSON.stringify({ ...rest, replyId: rest.replyId ?? null, later: null, type }).slice(1)}`), event)
    }
  }), { numRuns: 200 })
})

t.test('a run that throws, is aborted or left at any point is well formed, and ends', async () => {
  const how = fc.constantFrom('return', 'throw', 'interrupt', 'abort', 'leave')
  await fc.assert(fc.asyncProperty(fc.array(wild, { maxLength: 20 }), how, fc.nat(20), async (yielded, how, at) => {
    const controller = new AbortController()
    let isClosed = false
    const agent: Agent = {
      name: 'agent',
      async * stream () {
        try {
          for (const [index, event] of yielded.entries()) {
            if (index === at && how === 'throw') throw new Error('broken')
            if (index === at && how === 'interrupt') controller.abort(new RunInterrupted('user'))
            if (index === at && how === 'abort') controller.abort(new Error('timeout'))
            yield event as AgentEventInit
          }
        } finally {
          isClosed = true
        }
      }
    }
    const events: AgentEvent[] = []
    let error: unknown
    try {
      for await (const event of runAgent(agent, { messages: [], history: 'append' }, createRuntimeContext({ sessionId: 's', signal: controller.signal }))) {
        events.push(event)
        if (how === 'leave' && events.length === at) break
      }
    } catch (thrown) {
      error = thrown
    }
    assert.equal(isClosed, true)
    if (how === 'leave' && events.length === at) return
    const isFailed = error !== undefined
    if (isFailed) assert.ok(how === 'throw' || how === 'abort')
    assert.deepStrictEqual(findViolations(events, { end: isFailed ? 'failed' : 'complete' }), [])
  }), { numRuns: 400 })
})

const stated = new Set<unknown>(['TOOL_RESULT_END', 'tool_use', 'tool_result'])

/** Reviver: roles of messages and states of calls and results in upper case. */
function inUpperCase (this: Record<string, unknown>, key: string, value: unknown): unknown {
  const isEnum = (key === 'role' && Array.isArray(this.content)) || (key === 'state' && stated.has(this.type))
  return isEnum && typeof value === 'string' ? value.toUpperCase() : value
}

function run (yielded: readonly unknown[], repairs: Repair[] = []): AgentEvent[] {
  const events: AgentEvent[] = []
  const normaliser = new Normaliser({ agentName: 'agent', sessionId: 'session', onRepair: (repair) => { repairs.push(repair) } })
  for (const event of yielded) normaliser.push(event, (event) => { events.push(event) })
  normaliser.end({ kind: 'returned' }, (event) => { events.push(event) })
  return events
}

function cyclic (): unknown {
  const object: Record<string, unknown> = {}
  object.self = [object]
  return object
}

/** Not enumerable, or the report of a counterexample would throw too. */
function throwing (): unknown {
  return Object.defineProperty({ toJSON () { throw new Error('no') } }, 'type', { get () { throw new Error('no') } })
}
