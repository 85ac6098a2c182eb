import { type AgentEvent } from '../../lib/agent/index.ts'
import { type AgUiEvent } from './event-schemas.ts'

/** What decides how a child's events are told. */
export interface SubagentRules {
  /** Whether its thinking is told at all. */
  readonly thinking: boolean
  /** Whether what has no name of its own is sent as RAW. */
  readonly raw: boolean
}

/** The source of a child's event; undefined for the root agent's own. */
export function sourceOf (event: AgentEvent): string | undefined {
  return event.source === undefined || event.source.trim() === '' ? undefined : event.source
}

/** A child's event in the `subagent.*` namespace, outside the parent's lifecycle and text (section 12.1). */
export function subagentEvent (event: AgentEvent, source: string, rules: SubagentRules): AgUiEvent | undefined {
  const { type } = event
  // Internal tools are nobody's to see, whoever calls them.
  if ('toolCallName' in event && event.toolCallName?.startsWith('__') === true) return undefined
  switch (type) {
    case 'AGENT_START':
      return custom('lifecycle', { source, type, name: event.name ?? '' })
    case 'AGENT_END':
      return custom('lifecycle', { source, type })
    case 'TEXT_BLOCK_DELTA':
      return custom('text', { source, type, delta: event.delta })
    case 'THINKING_BLOCK_DELTA':
      return rules.thinking ? custom('thinking', { source, type, delta: event.delta }) : undefined
    case 'TOOL_CALL_START':
    case 'TOOL_CALL_END':
      return custom('tool_call', { source, type, toolCallId: event.toolCallId, toolName: event.toolCallName ?? '' })
    case 'TOOL_RESULT_END':
      return custom('tool_result', { source, type, toolCallId: event.toolCallId, toolName: event.toolCallName ?? '', state: event.state })
    case 'REQUIRE_USER_CONFIRM':
      return custom('require_confirm', { source, type, toolCallCount: event.toolCalls.length })
    case 'AGENT_RESULT':
      return rules.raw ? { type: 'RAW', event: rules.thinking ? event : withoutThinking(event), source } : undefined
    default:
      return rules.raw ? { type: 'RAW', event, source } : undefined
  }
}

function custom (name: string, value: Record<string, unknown>): AgUiEvent {
  return { type: 'CUSTOM', name: `subagent.${name}`, value }
}

/** A child's result repeats what it thought: a gate that let it through here would be none. */
function withoutThinking (event: Extract<AgentEvent, { type: 'AGENT_RESULT' }>): AgentEvent {
  return { ...event, result: { ...event.result, content: event.result.content.filter((block) => block.type !== 'thinking') } }
}
