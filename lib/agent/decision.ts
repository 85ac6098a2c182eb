import { type Static, Type } from '@sinclair/typebox'
import { ContentBlock, ToolResultState, ToolUseBlock } from './blocks.ts'
import { JsonObject } from './json.ts'
import { PermissionRule } from './permission-rule.ts'

/** Answer to a confirmation. `toolCall` is filled by {@link resolveDecisions} from the stored call, never by a client. */
export const ConfirmDecision = Type.Object({
  kind: Type.Literal('confirm'),
  toolCallId: Type.String(),
  approved: Type.Boolean(),
  editedArgs: Type.Optional(JsonObject),
  reason: Type.Optional(Type.String()),
  rules: Type.Optional(Type.Array(PermissionRule)),
  toolCall: Type.Optional(ToolUseBlock)
}, { additionalProperties: true })
/** @see {@link ConfirmDecision} */
export type ConfirmDecision = Static<typeof ConfirmDecision>

/** Result of a call that was executed outside the agent. */
export const ResultDecision = Type.Object({
  kind: Type.Literal('result'),
  toolCallId: Type.String(),
  toolName: Type.Optional(Type.String()),
  output: Type.Array(ContentBlock),
  state: ToolResultState,
  metadata: Type.Optional(JsonObject),
  toolCall: Type.Optional(ToolUseBlock)
}, { additionalProperties: true })
/** @see {@link ResultDecision} */
export type ResultDecision = Static<typeof ResultDecision>

/** Answer to an {@link InputRequest}. */
export const InputDecision = Type.Object({
  kind: Type.Literal('input'),
  requestId: Type.String(),
  status: Type.Union([Type.Literal('resolved'), Type.Literal('cancelled')]),
  payload: Type.Optional(Type.Unknown())
}, { additionalProperties: true })
/** @see {@link InputDecision} */
export type InputDecision = Static<typeof InputDecision>

/** A human's or a client's answer to one {@link Pending}, by its id (agent-events 9.2). */
export const Decision = Type.Union([ConfirmDecision, ResultDecision, InputDecision])
/** @see {@link Decision} */
export type Decision = Static<typeof Decision>
