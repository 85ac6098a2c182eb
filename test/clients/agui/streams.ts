import fc from 'fast-check'
import { type AgentEvent, type AgentEventInit, type InputRequest, Normaliser } from '../../../lib/agent/index.ts'
import { type MappingOptions, resolveMappingConfig } from '../../../plugins/ag-ui/config.ts'
import { createProjection, type MappingRun } from '../../../plugins/ag-ui/events.ts'
import { type RunEnd } from '../../../plugins/ag-ui/terminal.ts'

const reply = fc.constantFrom('r1', 'r2', undefined)
const block = fc.constantFrom('text', 'b2', undefined)
const call = fc.constantFrom('c1', 'c2', 'c3', 'call-0')
const toolName = fc.constantFrom('search', 'paint', '__internal', '')
const source = fc.option(fc.constantFrom('main/child', 'main/other'), { nil: undefined, freq: 6 })
const delta = fc.constantFrom('Hello', ' world', '', '{"a":', '1}', '\ud83d', '\ude00!', 'line\nline\u2028"quoted"', 'x')
const state = fc.constantFrom('success', 'error', 'denied', 'interrupted', 'running')
const usage = fc.record({ inputTokens: fc.nat(90), outputTokens: fc.nat(9) })
const image = fc.constant({ type: 'image', source: { type: 'url', url: 'https://example.org/a.png', mime_type: 'image/png' } })
const toolUse = fc.record({ id: call, name: toolName }).map((part) => ({ ...part, type: 'tool_use', input: {} }))

const kinds = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom('TEXT_BLOCK_DELTA', 'THINKING_BLOCK_DELTA'), replyId: reply, blockId: block, delta }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('TEXT_BLOCK_START', 'TEXT_BLOCK_END', 'THINKING_BLOCK_START', 'THINKING_BLOCK_END'), replyId: reply, blockId: block }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('TOOL_CALL_START'), replyId: reply, toolCallId: call, toolCallName: toolName }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('TOOL_CALL_DELTA'), replyId: reply, toolCallId: call, delta }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom('TOOL_CALL_END', 'TOOL_RESULT_START'), replyId: reply, toolCallId: call, toolCallName: toolName }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('TOOL_RESULT_TEXT_DELTA'), replyId: reply, toolCallId: call, delta }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('TOOL_RESULT_DATA_DELTA'), replyId: reply, toolCallId: call, data: image }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('TOOL_RESULT_END'), replyId: reply, toolCallId: call, state }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('MODEL_CALL_END'), replyId: reply, usage, model: fc.constantFrom('m', undefined) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('AGENT_START', 'AGENT_END', 'MODEL_CALL_START', 'DATA_BLOCK_START'), replyId: reply }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('REQUIRE_USER_CONFIRM', 'REQUIRE_EXTERNAL_EXECUTION'), replyId: reply, toolCalls: fc.array(toolUse, { maxLength: 2 }) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      { type: 'CUSTOM', name: 'progress', value: { done: 1 } }, { type: 'HINT_BLOCK', hint: 'h' }, { type: 'EXCEED_MAX_ITERS', maxIters: 3, currentIter: 3 },
      { type: 'ALL_TOOLS_DENIED', deniedToolCalls: [] }, { type: 'REQUEST_STOP', reason: 'x' }, { type: 'NONSENSE' }, null,
      { type: 'REQUIRE_INPUT', requests: [{ id: 'i1', reason: 'input_required', message: 'Name?' } satisfies InputRequest] }
    )
  }
)

/** What an agent may yield, well formed or not. */
export const agentEvents = fc.array(fc.tuple(kinds, source).map(([event, from]) => event === null || from === undefined ? event : { ...event as object, source: from }), { maxLength: 40 })

/** How an execution may end. */
export const ends = fc.constantFrom('returned', 'cancelled', 'disconnect', 'agent', 'timeout', 'failed')
export type EndName = 'returned' | 'cancelled' | 'disconnect' | 'agent' | 'timeout' | 'failed'

/** Runs what an agent yields through the normaliser and the mapping, as the run engine does. */
export function project (events: readonly unknown[], how: EndName, run: MappingRun, options: MappingOptions = {}): string[] {
  const lines: string[] = []
  const emit = (data: string): void => { lines.push(data) }
  const projection = createProjection(resolveMappingConfig(options), { now: () => 1_700_000_000_000, ...run })
  const normaliser = new Normaliser({ agentName: 'main', sessionId: run.input.threadId })
  const next = (event: AgentEvent): void => { projection.next(event, emit) }
  projection.open(emit)
  for (const event of events) normaliser.push(event as AgentEventInit, next)
  normaliser.end({ kind: how === 'returned' ? 'returned' : how === 'failed' || how === 'timeout' ? 'failed' : 'interrupted' }, next)
  projection.close(endOf(how, normaliser), emit)
  return lines
}

function endOf (how: EndName, { message, pending, reason }: Normaliser): RunEnd {
  switch (how) {
    case 'returned': return pending.length > 0 ? { kind: 'paused', pending, interrupts: [], message } : { kind: 'completed', reason, message }
    case 'cancelled': return { kind: 'cancelled' }
    case 'disconnect': return { kind: 'interrupted', why: 'disconnect' }
    case 'agent': return { kind: 'interrupted', why: 'agent' }
    case 'timeout': return { kind: 'timeout' }
    case 'failed': return { kind: 'failed', error: { code: 'internal_error', message: 'The agent failed.' } }
  }
}
