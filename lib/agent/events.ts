import { type Static, type TLiteral, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { ContentBlock, ToolResultBlock, ToolResultState, ToolUseBlock } from './blocks.ts'
import { GenerateReason } from './generate-reason.ts'
import { JsonObject } from './json.ts'
import { Msg } from './message.ts'
import { PermissionRule } from './permission-rule.ts'
import { Usage } from './usage.ts'

const text = Type.String()
const maybe = Type.Optional(text)

const envelope = { id: text, createdAt: text, source: maybe, metadata: Type.Optional(JsonObject) }
const step = { replyId: maybe }
const block = { ...step, blockId: maybe }
const call = { ...step, toolCallId: text, toolCallName: maybe }

type Envelope = typeof envelope
type EventSchema<T extends string, P extends TProperties> = TObject<{ type: TLiteral<T> } & Envelope & P>

function event<T extends string, P extends TProperties> (type: T, properties: P): EventSchema<T, P> {
  return Type.Object({ type: Type.Literal(type), ...envelope, ...properties }, { additionalProperties: true }) as unknown as EventSchema<T, P>
}

/** A human's answer to one confirmation, as the resumed run reports it. */
export const ConfirmResult = Type.Object({
  confirmed: Type.Boolean(), toolCall: ToolUseBlock, rules: Type.Optional(Type.Array(PermissionRule)), reason: maybe
}, { additionalProperties: true })
/** @see {@link ConfirmResult} */
export type ConfirmResult = Static<typeof ConfirmResult>

/** Something an agent needs from outside that is no tool call's approval: a text, a login, a choice. */
export const InputRequest = Type.Object({
  id: text,
  reason: text,
  message: maybe,
  toolCallId: maybe,
  responseSchema: Type.Optional(JsonObject),
  expiresAt: maybe,
  metadata: Type.Optional(JsonObject)
}, { additionalProperties: true })
/** @see {@link InputRequest} */
export type InputRequest = Static<typeof InputRequest>

/** Schema of each event by its type: AgentScope's 31 and `REQUIRE_INPUT` (agent-events 9.2). */
export const agentEventSchemas = {
  AGENT_START: event('AGENT_START', { ...step, sessionId: maybe, name: maybe, role: maybe }),
  AGENT_END: event('AGENT_END', { ...step, reason: Type.Optional(GenerateReason) }),
  AGENT_RESULT: event('AGENT_RESULT', { result: Msg }),
  MODEL_CALL_START: event('MODEL_CALL_START', { ...step, model: maybe }),
  MODEL_CALL_END: event('MODEL_CALL_END', { ...step, usage: Type.Optional(Usage), model: maybe, finishReason: maybe }),
  TEXT_BLOCK_START: event('TEXT_BLOCK_START', block),
  TEXT_BLOCK_DELTA: event('TEXT_BLOCK_DELTA', { ...block, delta: text }),
  TEXT_BLOCK_END: event('TEXT_BLOCK_END', block),
  THINKING_BLOCK_START: event('THINKING_BLOCK_START', block),
  THINKING_BLOCK_DELTA: event('THINKING_BLOCK_DELTA', { ...block, delta: text }),
  THINKING_BLOCK_END: event('THINKING_BLOCK_END', block),
  DATA_BLOCK_START: event('DATA_BLOCK_START', { ...block, mediaType: maybe, name: maybe, url: maybe }),
  DATA_BLOCK_DELTA: event('DATA_BLOCK_DELTA', { ...block, delta: text }),
  DATA_BLOCK_END: event('DATA_BLOCK_END', block),
  HINT_BLOCK: event('HINT_BLOCK', { ...block, hint: text, hintSource: maybe }),
  TOOL_CALL_START: event('TOOL_CALL_START', {
    ...call, executor: Type.Optional(Type.Union([Type.Literal('agent'), Type.Literal('client')]))
  }),
  TOOL_CALL_DELTA: event('TOOL_CALL_DELTA', { ...call, delta: text }),
  TOOL_CALL_END: event('TOOL_CALL_END', call),
  TOOL_RESULT_START: event('TOOL_RESULT_START', call),
  TOOL_RESULT_TEXT_DELTA: event('TOOL_RESULT_TEXT_DELTA', { ...call, delta: text }),
  TOOL_RESULT_DATA_DELTA: event('TOOL_RESULT_DATA_DELTA', { ...call, data: ContentBlock }),
  TOOL_RESULT_END: event('TOOL_RESULT_END', { ...call, state: ToolResultState }),
  REQUIRE_USER_CONFIRM: event('REQUIRE_USER_CONFIRM', { ...step, toolCalls: Type.Array(ToolUseBlock) }),
  REQUIRE_EXTERNAL_EXECUTION: event('REQUIRE_EXTERNAL_EXECUTION', { ...step, toolCalls: Type.Array(ToolUseBlock) }),
  REQUIRE_INPUT: event('REQUIRE_INPUT', { ...step, requests: Type.Array(InputRequest) }),
  USER_CONFIRM_RESULT: event('USER_CONFIRM_RESULT', { ...step, confirmResults: Type.Array(ConfirmResult) }),
  EXTERNAL_EXECUTION_RESULT: event('EXTERNAL_EXECUTION_RESULT', { ...step, toolResults: Type.Array(ToolResultBlock) }),
  EXCEED_MAX_ITERS: event('EXCEED_MAX_ITERS', { ...step, maxIters: Type.Number(), currentIter: Type.Number() }),
  REQUEST_STOP: event('REQUEST_STOP', { reason: maybe, generateReason: Type.Optional(GenerateReason) }),
  ALL_TOOLS_DENIED: event('ALL_TOOLS_DENIED', { deniedToolCalls: Type.Array(ToolUseBlock) }),
  SUBAGENT_EXPOSED: event('SUBAGENT_EXPOSED', { subagentId: text, agentId: text, sessionId: text, label: maybe }),
  CUSTOM: event('CUSTOM', { name: text, value: JsonObject })
} as const

type Schemas = typeof agentEventSchemas

/** One of the 32 event types. */
export type AgentEventType = keyof Schemas

/** The event of one type. */
export type AgentEventOf<T extends AgentEventType> = Static<Schemas[T]>

/** An event as adapters see it: stamped, well formed, in a well-formed order (agent-events 9.3). */
export type AgentEvent = { [T in AgentEventType]: AgentEventOf<T> }[AgentEventType]

/** Schema of {@link AgentEvent}. */
export const AgentEvent = Type.Unsafe<AgentEvent>(Type.Union(Object.values(agentEventSchemas)))

// Distributive: a plain Omit over the union would keep only the members all events share.
type Init<T> = T extends AgentEvent ? Omit<T, 'id' | 'createdAt'> & Partial<Pick<T, 'id' | 'createdAt'>> : never

/** An event as an agent yields it: `id` and `createdAt` are optional, {@link Normaliser} stamps what lacks them. */
export type AgentEventInit = Init<AgentEvent>

/** The {@link AgentEventInit} of one type. */
export type AgentEventInitOf<T extends AgentEventType> = Init<AgentEventOf<T>>

/** True for the name of a known event type. */
export function isAgentEventType (value: unknown): value is AgentEventType {
  return typeof value === 'string' && Object.hasOwn(agentEventSchemas, value)
}
