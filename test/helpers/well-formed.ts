// Says what is wrong with a stream of agent events (agent-events 9.3). Shares nothing with the normaliser but the schemas.
import { Value } from '@sinclair/typebox/value'
import { agentEventSchemas, type AgentEvent, type AgentEventType } from '../../lib/agent/index.ts'

/** How the stream ended. */
export interface StreamExpectation {
  /** `complete`: AGENT_RESULT and AGENT_END are there; `failed`: neither is. */
  readonly end: 'complete' | 'failed'
  readonly knownCalls?: ReadonlySet<string>
}

interface Source {
  isRunning: boolean
  readonly blocks: Set<string>
  readonly blockIds: Set<string>
  readonly models: Set<string>
  /** Arguments of open calls. */
  readonly calls: Map<string, string>
  /** Calls that were announced and ended. */
  readonly announced: Set<string>
  readonly results: Set<string>
  readonly answered: Set<string>
}

const withoutReply: ReadonlySet<string> = new Set<AgentEventType>(['AGENT_RESULT', 'REQUEST_STOP', 'ALL_TOOLS_DENIED', 'SUBAGENT_EXPOSED', 'CUSTOM'])
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/

/** Violations, empty when the stream is well formed. */
export function findViolations (events: readonly AgentEvent[], { end, knownCalls = new Set() }: StreamExpectation): string[] {
  const wrong: string[] = []
  const sources = new Map<string, Source>()
  const count = { start: 0, result: 0, end: 0 }
  for (const [index, event] of events.entries()) {
    const say = (text: string): void => { wrong.push(`#${index} ${event.type}${event.source === undefined ? '' : ` of ${event.source}`}: ${text}`) }
    checkShape(event, say)
    if (index === 0 && (event.type !== 'AGENT_START' || event.source !== undefined)) say('does not start the root')
    if (event.source === undefined) {
      if (event.type === 'AGENT_START') count.start++
      if (event.type === 'AGENT_RESULT') count.result++
      if (event.type === 'AGENT_END') count.end++
    }
    checkOrder(event, sourceOf(sources, event.source ?? ''), knownCalls, say)
  }
  for (const [path, source] of sources) {
    for (const [what, open] of Object.entries({ blocks: source.blocks, models: source.models, calls: source.calls, results: source.results })) {
      if (open.size > 0) wrong.push(`${what} of "${path}" left open: ${[...open.keys()].join()}`)
    }
    if (end === 'complete' && source.isRunning) wrong.push(`"${path}" left running`)
  }
  const expected = end === 'complete' ? 1 : 0
  if (count.start > 1 || (end === 'complete' && count.start === 0)) wrong.push(`${count.start} starts`)
  if (count.result !== expected || count.end !== expected) wrong.push(`${count.result} results, ${count.end} ends, expected ${expected}`)
  if (end === 'complete') checkEnd(events, wrong)
  return wrong
}

function checkShape (event: AgentEvent, say: (text: string) => void): void {
  const schema = agentEventSchemas[event.type]
  if (schema === undefined) return say('unknown type')
  if (!Value.Check(schema, event)) say(`does not fit its schema: ${JSON.stringify([...Value.Errors(schema, event)][0])}`)
  if (event.id === '') say('no id')
  if (!time.test(event.createdAt)) say(`time ${event.createdAt}`)
  const json = JSON.stringify(event)
  if (/\\ud[89a-f][0-9a-f]{2}/.test(json)) say('lone surrogate')
  if (json.includes('"__proto__":')) say('carries __proto__')
  if ('source' in event && !event.source) say('empty source')
  if (!withoutReply.has(event.type) && !('replyId' in event && event.replyId)) say('no replyId')
  if ('delta' in event && event.delta === '') say('empty delta')
}

function checkOrder (event: AgentEvent, source: Source, known: ReadonlySet<string>, say: (text: string) => void): void {
  if (event.type !== 'AGENT_START' && !source.isRunning) say('its source has not started, or has ended')
  const must = (isRight: boolean, text: string): void => { if (!isRight) say(text) }
  switch (event.type) {
    case 'AGENT_START':
      must(!source.isRunning, 'started twice')
      must(Boolean(event.sessionId && event.name && event.role), 'lacks session, name or role')
      source.isRunning = true
      return
    case 'AGENT_END':
      must(source.blocks.size + source.calls.size + source.results.size + source.models.size === 0, 'something is open')
      source.isRunning = false
      return
    case 'AGENT_RESULT':
      must(source.blocks.size + source.calls.size + source.results.size + source.models.size === 0, 'something is open')
      return
    case 'MODEL_CALL_START':
      must(!source.models.has(event.replyId ?? ''), 'open already')
      source.models.add(event.replyId ?? '')
      return
    case 'MODEL_CALL_END': return must(source.models.delete(event.replyId ?? ''), 'not open')
    case 'TEXT_BLOCK_START': case 'THINKING_BLOCK_START': case 'DATA_BLOCK_START':
      must(!source.blockIds.has(`${event.replyId} ${event.blockId}`), 'block id used before')
      source.blockIds.add(`${event.replyId} ${event.blockId}`)
      source.blocks.add(blockKey(event))
      return
    case 'TEXT_BLOCK_DELTA': case 'THINKING_BLOCK_DELTA': case 'DATA_BLOCK_DELTA': return must(source.blocks.has(blockKey(event)), 'not open')
    case 'TEXT_BLOCK_END': case 'THINKING_BLOCK_END': case 'DATA_BLOCK_END': return must(source.blocks.delete(blockKey(event)), 'not open')
    case 'HINT_BLOCK':
      must(!source.blockIds.has(`${event.replyId} ${event.blockId}`), 'block id used before')
      source.blockIds.add(`${event.replyId} ${event.blockId}`)
      return
    case 'TOOL_CALL_START':
      must(!source.calls.has(event.toolCallId), 'open already')
      must(!source.results.has(event.toolCallId), 'its result is open')
      must(event.toolCallId !== '' && Boolean(event.toolCallName), 'lacks id or name')
      source.calls.set(event.toolCallId, '')
      source.announced.delete(event.toolCallId)
      source.answered.delete(event.toolCallId)
      return
    case 'TOOL_CALL_DELTA': {
      const before = source.calls.get(event.toolCallId)
      must(before !== undefined, 'not open')
      source.calls.set(event.toolCallId, (before ?? '') + event.delta)
      return
    }
    case 'TOOL_CALL_END':
      must(source.calls.get(event.toolCallId)?.trim() !== '', 'no arguments')
      must(source.calls.delete(event.toolCallId), 'not open')
      source.announced.add(event.toolCallId)
      return
    case 'TOOL_RESULT_START':
      must(source.announced.has(event.toolCallId) || known.has(event.toolCallId), 'its call was not announced, or has not ended')
      must(!source.results.has(event.toolCallId), 'open already')
      must(!source.answered.has(event.toolCallId), 'answered before')
      source.results.add(event.toolCallId)
      return
    case 'TOOL_RESULT_TEXT_DELTA': case 'TOOL_RESULT_DATA_DELTA': return must(source.results.has(event.toolCallId), 'not open')
    case 'TOOL_RESULT_END':
      must(source.results.delete(event.toolCallId), 'not open')
      if (event.state !== 'running') source.answered.add(event.toolCallId)
      return
    case 'REQUIRE_USER_CONFIRM': case 'REQUIRE_EXTERNAL_EXECUTION':
      must(event.toolCalls.length > 0, 'asks for nothing')
      for (const { id, content, input } of event.toolCalls) {
        must(source.announced.has(id) || known.has(id), `the call ${id} was not announced, or has not ended`)
        must(content !== undefined && typeof input === 'object', 'lacks arguments')
      }
      return
    case 'REQUIRE_INPUT': return must(event.requests.length > 0, 'asks for nothing')
    default:
  }
}

function checkEnd (events: readonly AgentEvent[], wrong: string[]): void {
  const [result, end] = events.slice(-2)
  if (result?.type !== 'AGENT_RESULT' || result.source !== undefined) {
    wrong.push('AGENT_RESULT is not the last but one')
    return
  }
  if (end?.type !== 'AGENT_END' || end.source !== undefined) {
    wrong.push('AGENT_END is not the last')
    return
  }
  if (end.reason === undefined || result.result.metadata?.agentscope_generate_reason !== end.reason) wrong.push('the reasons differ')
  const [start] = events
  if (start?.type === 'AGENT_START' && start.replyId !== end.replyId) wrong.push('start and end differ in replyId')
}

function blockKey (event: Extract<AgentEvent, { blockId?: string }>): string {
  return `${event.type.split('_')[0]} ${event.replyId} ${event.blockId}`
}

function sourceOf (sources: Map<string, Source>, path: string): Source {
  let source = sources.get(path)
  if (source === undefined) {
    source = {
      isRunning: false,
      blocks: new Set(),
      blockIds: new Set(),
      models: new Set(),
      calls: new Map(),
      announced: new Set(),
      results: new Set(),
      answered: new Set()
    }
    sources.set(path, source)
  }
  return source
}
