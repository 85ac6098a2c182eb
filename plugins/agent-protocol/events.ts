import {
  type AgentEvent, type AgentEventInit, type AgentEventType, decodeEvent, isObject, isTimestamp, type JsonObject, parseArguments, toJson,
  type ToolUseBlock
} from '../../lib/agent/index.ts'
import { type Detail, type PendingConfirm, readStatus, type SentTaskEvent, type TaskEvent, type TaskEventType, type TaskStatus } from './wire.ts'

/** Types whose events are more than verbose; every other one is an `AGENT_EVENT`. */
const WIRE_TYPES: { readonly [T in AgentEventType]?: { readonly type: TaskEventType, readonly detail: Detail } } = {
  AGENT_START: { type: 'RUN_STARTED', detail: 'status' },
  AGENT_END: { type: 'RUN_FINISHED', detail: 'status' },
  TOOL_CALL_START: { type: 'TOOL_CALL_START', detail: 'status' },
  TOOL_CALL_END: { type: 'TOOL_CALL_END', detail: 'status' },
  TOOL_RESULT_END: { type: 'TOOL_RESULT', detail: 'status' },
  REQUIRE_USER_CONFIRM: { type: 'REQUIRE_CONFIRM', detail: 'status' },
  TEXT_BLOCK_DELTA: { type: 'TEXT_DELTA', detail: 'full' },
  THINKING_BLOCK_DELTA: { type: 'THINKING_DELTA', detail: 'full' }
}
const OTHERS = { type: 'AGENT_EVENT', detail: 'verbose' } as const

/** Names that older versions of the reference wrote into payloads. */
const LEGACY_TYPES: Readonly<Record<string, AgentEventType>> = {
  REPLY_START: 'AGENT_START',
  REPLY_END: 'AGENT_END',
  RUN_STARTED: 'AGENT_START',
  RUN_FINISHED: 'AGENT_END',
  MODEL_CALL_STARTED: 'MODEL_CALL_START',
  MODEL_CALL_ENDED: 'MODEL_CALL_END',
  BINARY_BLOCK_START: 'DATA_BLOCK_START',
  BINARY_BLOCK_DELTA: 'DATA_BLOCK_DELTA',
  BINARY_BLOCK_END: 'DATA_BLOCK_END',
  TOOL_RESULT_BINARY_DELTA: 'TOOL_RESULT_DATA_DELTA',
  THREAD_EXPOSED: 'SUBAGENT_EXPOSED'
}

/** The lowest level of detail that shows an event of this type. */
export function detailOf (type: AgentEventType): Detail {
  return (WIRE_TYPES[type] ?? OTHERS).detail
}

/** Whom an event is about. */
export interface TaskNames {
  readonly taskId: string
  /** The agent as the submitter named it. */
  readonly agentId?: string | undefined
}

/**
 * The task event that an agent's event becomes, without its sequence. Never fails: an event that cannot be written goes without its
 * payload (agent-protocol 4.4).
 */
export function encodeTaskEvent (event: AgentEvent, { taskId, agentId }: TaskNames): SentTaskEvent {
  const { type } = WIRE_TYPES[event.type] ?? OTHERS
  const payload = payloadOf(event)
  const agent = agentId ?? (event.type === 'AGENT_START' ? event.name : undefined)
  return {
    type,
    taskId,
    ...agent !== undefined && { agentId: agent },
    timestamp: event.createdAt,
    ...flatFields(event),
    eventType: event.type,
    ...payload !== undefined && { payload }
  }
}

/** A call as the person who decides about it sees it. */
export function pendingConfirm ({ id, name, input }: ToolUseBlock): PendingConfirm {
  return { toolCallId: id, toolName: name, toolInputJson: JSON.stringify(input) }
}

/**
 * The agent's events that a task event stands for: most often one, none for what only the server says, several for a pause that waits
 * for more than confirmations. The payload comes first, also under a type that is not known; without a good one the flat members are read.
 */
export function decodeTaskEvent (event: TaskEvent): AgentEventInit[] {
  const own = decodePayload(event.payload) ?? decodeFlat(event)
  const events = own === undefined ? [] : [own]
  if (event.type === 'REQUIRE_CONFIRM') events.push(...otherPauses(event, own?.type))
  return typeof event.taskId === 'string' ? events.map((found) => withTaskId(found, event.taskId as string)) : events // seen to be a string
}

/** What the server itself says of a task; undefined for an agent's event. */
export type TaskControl =
  | { readonly kind: 'status', readonly status: TaskStatus, readonly result?: string }
  | { readonly kind: 'error', readonly error: string, readonly code?: string }
  | { readonly kind: 'gap', readonly oldestSeq?: number, readonly lastSeq?: number, readonly reason?: string }

/** Reads a terminal event or a gap. */
export function controlOf (event: TaskEvent): TaskControl | undefined {
  switch (event.type) {
    case 'STATUS': {
      const status = readStatus(event.status)
      return status === undefined ? undefined : { kind: 'status', status, ...typeof event.result === 'string' && { result: event.result } }
    }
    case 'RUN_ERROR':
      return { kind: 'error', error: typeof event.error === 'string' ? event.error : 'error', ...typeof event.code === 'string' && { code: event.code } }
    case 'STREAM_GAP': {
      const { oldestSeq, lastSeq, reason } = event
      return { kind: 'gap', ...oldestSeq !== undefined && { oldestSeq }, ...lastSeq !== undefined && { lastSeq }, ...reason !== undefined && { reason } }
    }
    default: return undefined
  }
}

/** Reads the `data` of a frame; undefined for what is no JSON object. `seq` is a number or absent. */
export function parseTaskEvent (data: string): TaskEvent | undefined {
  try {
    const value = toJson(JSON.parse(data))
    if (!isObject(value)) return undefined
    const { seq, ...rest } = value
    const number = typeof seq === 'string' && /^\s*\d+\s*$/.test(seq) ? Number(seq) : seq
    return Number.isSafeInteger(number) ? { ...rest, seq: number as number } : rest // a safe integer is a number
  } catch {
    return undefined // broken JSON says nothing: the reader goes on with the next frame
  }
}

function payloadOf (event: AgentEvent): string | undefined {
  try {
    return JSON.stringify(event)
  } catch {
    return undefined // cyclic, or a getter that throws: the flat members are told without it
  }
}

function flatFields (event: AgentEvent): Omit<TaskEvent, 'type'> {
  switch (event.type) {
    case 'TEXT_BLOCK_DELTA': case 'THINKING_BLOCK_DELTA': return { text: event.delta }
    case 'TOOL_CALL_START': case 'TOOL_CALL_END': return callFields(event)
    case 'TOOL_RESULT_END': return { ...callFields(event), status: event.state.toUpperCase() }
    case 'REQUIRE_USER_CONFIRM': return { pendingConfirms: event.toolCalls.map(pendingConfirm) }
    default: return {}
  }
}

function callFields ({ toolCallId, toolCallName }: { readonly toolCallId: string, readonly toolCallName?: string }): Omit<TaskEvent, 'type'> {
  return { toolCallId, ...toolCallName !== undefined && { toolName: toolCallName } }
}

function decodePayload (payload: unknown): AgentEventInit | undefined {
  if (typeof payload !== 'string') return undefined
  const event = decodeEvent(payload)
  return event ?? decodeLegacy(payload)
}

function decodeLegacy (payload: string): AgentEventInit | undefined {
  try {
    const value: unknown = JSON.parse(payload)
    const type = isObject(value) && typeof value.type === 'string' && Object.hasOwn(LEGACY_TYPES, value.type) ? LEGACY_TYPES[value.type] : undefined
    return type === undefined ? undefined : decodeEvent({ ...value as object, type })
  } catch {
    return undefined // no JSON: the flat members are read
  }
}

function decodeFlat (event: TaskEvent): AgentEventInit | undefined {
  const init = flatInit(event)
  if (init === undefined) return undefined
  return isTimestamp(event.timestamp) ? { ...init, createdAt: event.timestamp } : init
}

function flatInit (event: TaskEvent): AgentEventInit | undefined {
  const { type, text, toolCallId, toolName } = event
  const call = typeof toolCallId === 'string' ? { toolCallId, ...typeof toolName === 'string' && { toolCallName: toolName } } : undefined
  switch (type) {
    case 'RUN_STARTED': return { type: 'AGENT_START', name: typeof event.agentId === 'string' ? event.agentId : 'remote' }
    case 'RUN_FINISHED': return { type: 'AGENT_END' }
    case 'TEXT_DELTA': return typeof text === 'string' ? { type: 'TEXT_BLOCK_DELTA', delta: text } : undefined
    case 'THINKING_DELTA': return typeof text === 'string' ? { type: 'THINKING_BLOCK_DELTA', delta: text } : undefined
    case 'TOOL_CALL_START': return call === undefined ? undefined : { type: 'TOOL_CALL_START', ...call }
    case 'TOOL_CALL_END': return call === undefined ? undefined : { type: 'TOOL_CALL_END', ...call }
    // Read like a payload: a state in any case, success where there is none.
    case 'TOOL_RESULT': return call === undefined ? undefined : decodeEvent({ type: 'TOOL_RESULT_END', ...call, state: event.status })
    case 'REQUIRE_CONFIRM': {
      const toolCalls = callsOf(event.pendingConfirms, 'asking')
      return toolCalls.length === 0 && hasOthers(event) ? undefined : { type: 'REQUIRE_USER_CONFIRM', toolCalls }
    }
    default: return undefined
  }
}

function hasOthers ({ pendingExternal, pendingInputs }: TaskEvent): boolean {
  return (pendingExternal?.length ?? 0) > 0 || (pendingInputs?.length ?? 0) > 0
}

/** What a pause waits for beside what its payload says. */
function otherPauses (event: TaskEvent, own: AgentEventType | undefined): AgentEventInit[] {
  const external = callsOf(event.pendingExternal, 'submitted')
  const inputs = Array.isArray(event.pendingInputs) ? decodeEvent({ type: 'REQUIRE_INPUT', requests: event.pendingInputs }) : undefined
  return [
    ...external.length > 0 && own !== 'REQUIRE_EXTERNAL_EXECUTION' ? [{ type: 'REQUIRE_EXTERNAL_EXECUTION' as const, toolCalls: external }] : [],
    ...inputs?.type === 'REQUIRE_INPUT' && inputs.requests.length > 0 && own !== 'REQUIRE_INPUT' ? [inputs] : []
  ]
}

/** Calls of `pendingConfirms`; members in snake case are read too, as the reference's client does. */
function callsOf (pending: unknown, state: 'asking' | 'submitted'): ToolUseBlock[] {
  if (!Array.isArray(pending)) return []
  return pending.filter(isObject).flatMap((item): ToolUseBlock[] => {
    const id = item.toolCallId ?? item.tool_call_id
    const name = item.toolName ?? item.tool_name
    if (typeof id !== 'string' || id === '') return []
    return [{ type: 'tool_use', id, name: typeof name === 'string' ? name : '', ...inputOf(item.toolInputJson ?? item.tool_input_json), state }]
  })
}

function inputOf (json: unknown): { readonly input: JsonObject, readonly content?: string } {
  if (typeof json !== 'string' || json.trim() === '') return { input: {} }
  try {
    const value: unknown = JSON.parse(json)
    if (!isObject(value)) return { input: { raw: toJson(value) ?? null } }
  } catch {
    return { input: { raw: json } } // cut off or no JSON: the person still sees the text
  }
  return { input: parseArguments(json), content: json }
}

function withTaskId (event: AgentEventInit, taskId: string): AgentEventInit {
  return { ...event, metadata: { ...event.metadata, taskId } }
}
