import type { ToolUseBlock } from './blocks.ts'
import type { InputRequest } from './events.ts'

/** Something a paused run waits for. `replyId` is the step that asked. */
export type Pending =
  | { readonly kind: 'confirm' | 'external', readonly replyId: string, readonly toolCall: ToolUseBlock }
  | { readonly kind: 'input', readonly replyId: string, readonly request: InputRequest }

/** The id that a {@link Decision} names: the tool call's or the request's. */
export function pendingId (pending: Pending): string {
  return pending.kind === 'input' ? pending.request.id : pending.toolCall.id
}
