import { type AgentEvent, type AgentEventInit, type Msg } from '../../../lib/agent/index.ts'
import { type MappingOptions, resolveMappingConfig } from '../../../plugins/ag-ui/config.ts'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { createProjection, type MappingRun } from '../../../plugins/ag-ui/events.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { type RunEnd } from '../../../plugins/ag-ui/terminal.ts'

/** The clock of these tests, in milliseconds. */
export const NOW = 1_700_000_000_000

/** A request of a 1.0 client with nothing in it. */
export const input: NormalisedInput = { threadId: 'th-7', runId: 'rn-1', protocolVersion: '1.0', messages: [], tools: [], context: [] }
/** The same from a client before 1.0. */
export const legacyInput: NormalisedInput = { threadId: 'th-7', runId: 'rn-1', messages: [], tools: [], context: [] }

export const message: Msg = { id: 'm', role: 'ASSISTANT', content: [] }
export const completed: RunEnd = { kind: 'completed', reason: 'MODEL_STOP', message }

/** Stamps what an agent yielded. */
export function stamp (event: AgentEventInit): AgentEvent {
  return { id: 'e', createdAt: '2026-01-01T00:00:00Z', ...event } as AgentEvent
}

/** What a projection writes for a well-formed stream, as parsed lines. */
export function project (events: readonly AgentEventInit[], options: MappingOptions = {}, run: Partial<MappingRun> = {}, end: RunEnd = completed): AgUiEvent[] {
  const lines: AgUiEvent[] = []
  const emit = (data: string): void => { lines.push(JSON.parse(data)) }
  const projection = createProjection(resolveMappingConfig(options), { input, now: () => NOW, ...run })
  projection.open(emit)
  for (const event of events) projection.next(stamp(event), emit)
  projection.close(end, emit)
  return lines
}

/** The events between RUN_STARTED and the terminal. */
export function between (events: readonly AgentEventInit[], options: MappingOptions = {}, run: Partial<MappingRun> = {}, end: RunEnd = completed): AgUiEvent[] {
  return project(events, options, run, end).slice(1, -1)
}

/** The terminal. */
export function terminal (end: RunEnd, options: MappingOptions = {}, run: Partial<MappingRun> = {}, events: readonly AgentEventInit[] = []): AgUiEvent | undefined {
  return project(events, options, run, end).at(-1)
}

/** A text delta. */
export function text (replyId: string, delta: string, blockId = 'text'): AgentEventInit {
  return { type: 'TEXT_BLOCK_DELTA', replyId, blockId, delta }
}

/** A thinking delta. */
export function thinking (replyId: string, delta: string, blockId = 'thinking'): AgentEventInit {
  return { type: 'THINKING_BLOCK_DELTA', replyId, blockId, delta }
}

/** A whole call. */
export function call (replyId: string, toolCallId: string, toolCallName: string, args = '{}'): AgentEventInit[] {
  return [
    { type: 'TOOL_CALL_START', replyId, toolCallId, toolCallName },
    { type: 'TOOL_CALL_DELTA', replyId, toolCallId, delta: args },
    { type: 'TOOL_CALL_END', replyId, toolCallId, toolCallName }
  ]
}

/** A whole result. */
export function result (replyId: string, toolCallId: string, content: string, state: 'success' | 'error' | 'denied' | 'interrupted' | 'running' = 'success'): AgentEventInit[] {
  return [
    { type: 'TOOL_RESULT_START', replyId, toolCallId },
    ...content === '' ? [] : [{ type: 'TOOL_RESULT_TEXT_DELTA' as const, replyId, toolCallId, delta: content }],
    { type: 'TOOL_RESULT_END', replyId, toolCallId, state }
  ]
}
