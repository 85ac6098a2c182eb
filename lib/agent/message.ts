import { type Static, Type } from '@sinclair/typebox'
import { ContentBlock } from './blocks.ts'
import { JsonObject } from './json.ts'
import { Usage } from './usage.ts'

/** Who speaks. Upper case, as on the wire of AgentScope; {@link decodeEvent} accepts lower case. */
export const Role = Type.Union([
  Type.Literal('USER'), Type.Literal('ASSISTANT'), Type.Literal('SYSTEM'), Type.Literal('TOOL')
])
/** @see {@link Role} */
export type Role = Static<typeof Role>

/** A message of a conversation. `timestamp` is `yyyy-MM-dd HH:mm:ss.SSS` in local time, without a zone (agent-events 2). */
export const Msg = Type.Object({
  id: Type.String(),
  name: Type.Optional(Type.String()),
  role: Role,
  content: Type.Array(ContentBlock),
  metadata: Type.Optional(JsonObject),
  timestamp: Type.Optional(Type.String()),
  usage: Type.Optional(Usage)
}, { additionalProperties: true })
/** @see {@link Msg} */
export type Msg = Static<typeof Msg>

/** Keys of `Msg.metadata` with a meaning of their own. */
export const MsgMetadata = {
  generateReason: 'agentscope_generate_reason',
  confirmResults: 'agentscope_confirm_results',
  confirmRequestReplyId: 'agentscope_confirm_request_reply_id',
  externalExecutionRequestReplyId: 'agentscope_external_execution_request_reply_id',
  synthetic: 'agentscope_synthetic',
  reminderKind: 'agentscope_reminder_kind',
  structuredOutput: '_structured_output',
  chatUsage: '_chat_usage',
  cacheControl: '_cache_control'
} as const

/** The text blocks of a message or of blocks, joined by line breaks. */
export function textOf (source: Msg | readonly ContentBlock[]): string {
  const blocks: readonly ContentBlock[] = 'content' in source ? source.content : source
  return blocks.flatMap((block) => block.type === 'text' ? [block.text] : []).join('\n')
}
