import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { ContentPart, Message, Opaque, OpenObject, RunAgentInput } from './schemas.ts'

/** Members every event may carry: integer milliseconds, the producer's own event (never null), open metadata. */
const base = {
  timestamp: Type.Optional(Type.Integer({ description: 'Milliseconds since 1970.' })),
  rawEvent: Type.Optional(Opaque),
  metadata: Type.Optional(OpenObject)
}
const run = <Name extends string, Fields extends TProperties>(name: Name, fields: Fields) => Type.Object({ type: Type.Literal(name), ...fields, ...base })
/** Events that may belong to a subagent. */
const owned = <Name extends string, Fields extends TProperties>(name: Name, fields: Fields) =>
  Type.Object({ type: Type.Literal(name), ...fields, ...base, subagentRunId: Type.Optional(Type.String()) })

const MessageId = Type.String()
const Role = Type.Union([Type.Literal('developer'), Type.Literal('system'), Type.Literal('assistant'), Type.Literal('user')])
const Count = Type.Optional(Type.Integer({ minimum: 0 }))

/** A JSON Pointer; one that is not makes a STATE_DELTA fatal for the official client. */
const Pointer = Type.String({ pattern: '^(/([^/~]|~[01])*)*$' })
const withValue = <Op extends 'add' | 'replace' | 'test'>(op: Op) => Type.Object({ op: Type.Literal(op), path: Pointer, value: Opaque })
const withFrom = <Op extends 'move' | 'copy'>(op: Op) => Type.Object({ op: Type.Literal(op), path: Pointer, from: Pointer })

/** One step of an RFC 6902 patch. */
export const PatchOperation = Type.Union([
  withValue('add'), withValue('replace'), withValue('test'), withFrom('move'), withFrom('copy'), Type.Object({ op: Type.Literal('remove'), path: Pointer })
])
export type PatchOperation = Static<typeof PatchOperation>
const Patch = Type.Array(PatchOperation)

/** Tokens of one provider and model; cached and reasoning tokens are parts of the totals (section 13). */
export const TokenUsage = Type.Object({
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  inputTokens: Count,
  outputTokens: Count,
  totalTokens: Count,
  reasoningTokens: Count,
  cachedInputTokens: Count,
  cacheWriteInputTokens: Count
})
export type TokenUsage = Static<typeof TokenUsage>

/** What a paused run waits for; a null in any optional member is fatal for every client (section 4). */
export const Interrupt = Type.Object({
  id: Type.String(),
  reason: Type.String(),
  message: Type.Optional(Type.String()),
  toolCallId: Type.Optional(Type.String()),
  responseSchema: Type.Optional(OpenObject),
  expiresAt: Type.Optional(Type.String()),
  metadata: Type.Optional(OpenObject),
  subagentRunId: Type.Optional(Type.String())
})
export type Interrupt = Static<typeof Interrupt>

/** Why a run ended; absent means success. */
export const Outcome = Type.Union([
  Type.Object({ type: Type.Literal('success'), pendingToolCallIds: Type.Optional(Type.Array(Type.String())) }),
  Type.Object({ type: Type.Literal('interrupt'), interrupts: Type.Array(Interrupt, { minItems: 1 }) }),
  Type.Object({ type: Type.Literal('cancelled') })
])
export type Outcome = Static<typeof Outcome>

/** The 31 events of AG-UI 1.0, told apart by `type` (section 4). */
export const AgUiEvent = Type.Union([
  run('RUN_STARTED', {
    threadId: Type.String(),
    runId: Type.String(),
    protocolVersion: Type.Optional(Type.String()),
    parentRunId: Type.Optional(Type.String()),
    input: Type.Optional(RunAgentInput)
  }),
  run('RUN_FINISHED', {
    threadId: Type.String(),
    runId: Type.String(),
    result: Type.Optional(Opaque),
    outcome: Type.Optional(Outcome),
    usage: Type.Optional(Type.Array(TokenUsage))
  }),
  run('RUN_ERROR', { message: Type.String(), code: Type.Optional(Type.String()), usage: Type.Optional(Type.Array(TokenUsage)) }),
  owned('STEP_STARTED', { stepName: Type.String() }),
  owned('STEP_FINISHED', { stepName: Type.String() }),
  owned('TEXT_MESSAGE_START', { messageId: MessageId, role: Type.Optional(Role), name: Type.Optional(Type.String()) }),
  owned('TEXT_MESSAGE_CONTENT', { messageId: MessageId, delta: Type.String() }),
  owned('TEXT_MESSAGE_END', { messageId: MessageId }),
  owned('TEXT_MESSAGE_CHUNK', {
    messageId: Type.Optional(MessageId), role: Type.Optional(Role), delta: Type.Optional(Type.String()), name: Type.Optional(Type.String())
  }),
  owned('TOOL_CALL_START', { toolCallId: Type.String(), toolCallName: Type.String(), parentMessageId: Type.Optional(MessageId) }),
  owned('TOOL_CALL_ARGS', { toolCallId: Type.String(), delta: Type.String() }),
  owned('TOOL_CALL_END', { toolCallId: Type.String() }),
  owned('TOOL_CALL_CHUNK', {
    toolCallId: Type.Optional(Type.String()),
    toolCallName: Type.Optional(Type.String()),
    parentMessageId: Type.Optional(MessageId),
    delta: Type.Optional(Type.String())
  }),
  owned('TOOL_CALL_RESULT', {
    messageId: MessageId,
    toolCallId: Type.String(),
    content: Type.Union([Type.String(), Type.Array(ContentPart)]),
    role: Type.Optional(Type.Literal('tool'))
  }),
  owned('STATE_SNAPSHOT', { snapshot: Opaque }),
  owned('STATE_DELTA', { delta: Patch }),
  run('MESSAGES_SNAPSHOT', { messages: Type.Array(Message) }),
  owned('ACTIVITY_SNAPSHOT', { messageId: MessageId, activityType: Type.String(), content: OpenObject, replace: Type.Optional(Type.Boolean()) }),
  owned('ACTIVITY_DELTA', { messageId: MessageId, activityType: Type.String(), patch: Patch }),
  owned('REASONING_START', { messageId: MessageId }),
  owned('REASONING_MESSAGE_START', { messageId: MessageId, role: Type.Literal('reasoning') }),
  owned('REASONING_MESSAGE_CONTENT', { messageId: MessageId, delta: Type.String() }),
  owned('REASONING_MESSAGE_END', { messageId: MessageId }),
  owned('REASONING_MESSAGE_CHUNK', { messageId: Type.Optional(MessageId), delta: Type.Optional(Type.String()) }),
  owned('REASONING_END', { messageId: MessageId }),
  owned('REASONING_ENCRYPTED_VALUE', {
    subtype: Type.Union([Type.Literal('tool-call'), Type.Literal('message')]), entityId: Type.String(), encryptedValue: Type.String()
  }),
  run('SUBAGENT_STARTED', {
    subagentRunId: Type.String(),
    name: Type.String(),
    description: Type.Optional(Type.String()),
    parentSubagentRunId: Type.Optional(Type.String()),
    parentToolCallId: Type.Optional(Type.String()),
    parentMessageId: Type.Optional(MessageId)
  }),
  run('SUBAGENT_FINISHED', {
    subagentRunId: Type.String(),
    result: Type.Optional(Opaque),
    outcome: Type.Optional(Type.Union([
      Type.Object({ type: Type.Literal('success') }),
      Type.Object({ type: Type.Literal('suspended'), interruptIds: Type.Optional(Type.Array(Type.String())) })
    ]))
  }),
  run('SUBAGENT_ERROR', { subagentRunId: Type.String(), message: Type.String(), code: Type.Optional(Type.String()) }),
  owned('RAW', { event: Opaque, source: Type.Optional(Type.String()) }),
  owned('CUSTOM', { name: Type.String(), value: Opaque })
])
export type AgUiEvent = Static<typeof AgUiEvent>
/** One event type's shape. */
export type AgUiEventOf<Name extends AgUiEvent['type']> = Extract<AgUiEvent, { type: Name }>
