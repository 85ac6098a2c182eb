import { type ContentBlock, type Msg, textOf } from '../../lib/agent/index.ts'
import { type Profile } from './input.ts'
import { CLIENT_METADATA, ENCRYPTED_VALUE } from './messages.ts'
import { type AssistantMessage, type ContentPart, type Message, type ToolCall } from './schemas.ts'
import { partOf, resultContent, ToolResult } from './tool-result.ts'

/** How an agent's messages are shown to a client. */
export interface HistoryOptions {
  /** Clients before 1.0 throw on tool messages made of parts. */
  readonly profile: Profile
  /** Whether thinking becomes reasoning messages. @default false */
  readonly enableReasoning?: boolean
}

/**
 * Turns an agent's messages into AG-UI messages (section 18.2), for snapshots of a conversation the agent keeps: what was thought, said,
 * called and returned in one message become messages of their own, the first of which has the message's id.
 */
export function toAgUiMessages (messages: readonly Msg[], options: HistoryOptions): Message[] {
  return messages.flatMap((message): Message[] => {
    if (message.role === 'SYSTEM') return [{ id: message.id, role: 'system', content: textOf(message), ...commonOf(message) }]
    if (message.role === 'USER') return [{ id: message.id, role: 'user', content: userContent(message.content), ...commonOf(message) }]
    return turnOf(message, options)
  })
}

function turnOf (message: Msg, { profile, enableReasoning = false }: HistoryOptions): Message[] {
  const turn: Message[] = []
  const ids = new Set<string>()
  // The first piece keeps the message's id, by which agents and clients find it again.
  const take = (id: string): string => {
    let free = id
    for (let count = 2; ids.has(free); count++) free = `${id}:${count}`
    ids.add(free)
    return free
  }
  let spoken: AssistantMessage | undefined
  const speak = (): AssistantMessage => {
    if (spoken === undefined) turn.push(spoken = { id: take(message.id), role: 'assistant', ...commonOf(message) })
    return spoken
  }
  for (const block of message.content) {
    if (block.type === 'tool_result') {
      turn.push({
        id: take(message.role === 'TOOL' ? message.id : `${message.id}:${block.id}`),
        role: 'tool',
        toolCallId: block.id,
        content: resultOf(block.output, profile),
        ...block.state === 'error' && { error: textOf(block.output) || 'error' }
      })
      // What comes after a result answers it.
      spoken = undefined
    } else if (block.type === 'text') {
      // Calls stand behind the text of their message, so text behind calls needs another one.
      if (spoken?.toolCalls !== undefined) spoken = undefined
      const target = speak()
      target.content = target.content === undefined ? block.text : `${target.content}\n${block.text}`
    } else if (block.type === 'tool_use') {
      const target = speak();
      (target.toolCalls ??= []).push(callOf(block))
    } else if (block.type === 'thinking' && enableReasoning) {
      const encrypted = block.metadata?.[ENCRYPTED_VALUE]
      turn.push({ id: take(`${message.id}-reasoning`), role: 'reasoning', content: block.thinking, ...typeof encrypted === 'string' && { encryptedValue: encrypted } })
      spoken = undefined
    }
  }
  return turn
}

function callOf (block: Extract<ContentBlock, { type: 'tool_use' }>): ToolCall {
  const encrypted = block.metadata?.[ENCRYPTED_VALUE]
  return {
    id: block.id,
    type: 'function',
    function: { name: block.name, arguments: block.content ?? JSON.stringify(block.input) },
    ...typeof encrypted === 'string' && { encryptedValue: encrypted }
  }
}

function resultOf (output: readonly ContentBlock[], profile: Profile): string | ContentPart[] {
  const result = new ToolResult()
  for (const block of output) result.addBlock(block)
  return resultContent(result, 'success', profile)
}

/** A user's words alone as text; with media, as parts in their order. */
function userContent (blocks: readonly ContentBlock[]): string | ContentPart[] {
  const parts = blocks.flatMap((block): ContentPart[] => {
    const part = block.type === 'text' ? { type: 'text' as const, text: block.text } : partOf(block)
    return part === undefined ? [] : [part]
  })
  return parts.every((part) => part.type === 'text') ? textOf(blocks) : parts
}

function commonOf ({ name, metadata }: Msg): { name?: string, metadata?: Record<string, unknown> } {
  const own = metadata?.[CLIENT_METADATA]
  return {
    ...name !== undefined && { name },
    ...typeof own === 'object' && own !== null && !Array.isArray(own) && { metadata: { ...own } }
  }
}
