import { isObject, type JsonObject, type Pending, pendingId, type ToolUseBlock } from '../../lib/agent/index.ts'
import { AguiInputError } from './errors.ts'
import { type Interrupt } from './event-schemas.ts'

/** Answers an approval takes. `editedArgs` in it tells a page that arguments may be edited. */
const CONFIRM_RESPONSE_SCHEMA = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    editedArgs: { type: 'object', description: 'Full replacement of the tool args. Not merged.' },
    reason: { type: 'string', description: 'Optional explanation supplied when the tool call is denied.' }
  },
  required: ['approved']
} as const

/** Reasons the protocol itself names; all others carry a prefix. */
const CORE_REASONS: ReadonlySet<string> = new Set(['tool_call', 'input_required', 'confirmation'])

/** What else is known of an interrupt. */
export interface InterruptDetail {
  /** The id it is recorded under. @default the one {@link interruptId} makes */
  readonly id?: string
  /** Milliseconds since 1970 after which it can only be cancelled. */
  readonly expiresAt?: number | undefined
  /** What the suspended call said of itself. */
  readonly suspensionText?: string | undefined
  /** The id the client knows the call by. @default the agent's own */
  readonly toolCallId?: string
}

/** `<replyId>:<toolCallId>`, or the call's id alone where the reply has none: unique among a thread's open interrupts (section 20.1). */
export function interruptId (pending: Pending): string {
  const id = pendingId(pending)
  return pending.replyId.trim() === '' ? id : `${pending.replyId}:${id}`
}

/** Something a run waits for as a client is told of it (sections 20.2, 20.3); members without a value are absent, as a null there is fatal. */
export function interruptOf (pending: Pending, detail: InterruptDetail = {}): Interrupt {
  const id = detail.id ?? interruptId(pending)
  if (pendingId(pending).trim() === '') throw new AguiInputError('A call that waits for its answer has no id.')
  if (pending.kind === 'input') {
    const { request } = pending
    return {
      id,
      reason: CORE_REASONS.has(request.reason) || request.reason.includes(':') ? request.reason : `agentscope:${request.reason}`,
      ...text('message', request.message),
      ...text('toolCallId', request.toolCallId),
      ...isObject(request.responseSchema) && { responseSchema: request.responseSchema },
      ...expiry(detail.expiresAt, request.expiresAt),
      ...isObject(request.metadata) && { metadata: request.metadata }
    }
  }
  const { toolCall } = pending
  const extra = isObject(toolCall.metadata) ? toolCall.metadata : {}
  const schema = isObject(extra['responseSchema']) ? extra['responseSchema'] : pending.kind === 'confirm' ? CONFIRM_RESPONSE_SCHEMA : undefined
  return {
    id,
    reason: 'tool_call',
    toolCallId: detail.toolCallId ?? toolCall.id,
    ...text('message', extra['message'] ?? (pending.kind === 'confirm' ? confirmMessage(toolCall) : detail.suspensionText)),
    ...schema !== undefined && { responseSchema: { ...schema } },
    ...expiry(detail.expiresAt, extra['expiresAt']),
    metadata: {
      ...pending.kind === 'confirm' && { 'agentscope.interruptKind': 'permission_confirm' },
      ...text('toolName', toolCall.name),
      ...isObject(toolCall.input) && Object.keys(toolCall.input).length > 0 && { toolInput: toolCall.input },
      toolContent: argumentsText(toolCall),
      ...text('replyId', pending.replyId),
      ...Array.isArray(extra['suggestedRules']) && { suggestedRules: extra['suggestedRules'] }
    }
  }
}

function confirmMessage ({ name }: ToolUseBlock): string {
  return `Tool '${name.trim() === '' ? 'tool' : name}' requires user confirmation before execution`
}

/** The arguments as the text of a JSON object, whatever the model wrote. */
function argumentsText ({ content, input }: ToolUseBlock): string {
  try {
    if (content !== undefined && isObject(JSON.parse(content))) return content
  } catch {
    // Not JSON: the parsed input stands for it.
  }
  return JSON.stringify(isObject(input) ? input : {} satisfies JsonObject)
}

function text<Name extends string> (name: Name, value: unknown): { [key in Name]?: string } {
  return typeof value === 'string' && value.trim() !== '' ? { [name]: value } as { [key in Name]: string } : {} // a computed key widens to string
}

function expiry (at: number | undefined, own: unknown): { expiresAt?: string } {
  return at === undefined ? text('expiresAt', own) : { expiresAt: new Date(at).toISOString() }
}
