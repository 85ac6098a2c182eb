import { type ContentBlock, isObject, type JsonObject, type MediaSource, type Msg, MsgMetadata, type ThinkingBlock, toJson, type ToolUseBlock } from '../../lib/agent/index.ts'
import { AguiInputError } from './errors.ts'
import { type AssistantMessage, type ContentPart, type MediaPart, type Message, type ToolCall, type ToolMessage, type UserMessage } from './schemas.ts'

/** How messages are turned into what an agent takes. */
export interface ConvertOptions {
  /** What becomes of a part that cannot be used in the newest user message; in older ones a note always takes its place. @default 'error' */
  readonly unsupportedContent?: 'error' | 'skip'
  /** Media types the agent takes as documents, as its `capabilities.inputMedia` says: `application/pdf`, `text/*`. @default [] */
  readonly documentTypes?: readonly string[]
  /** Calls that have waited for an answer until now: what stands for their result, instead of what the client has; undefined for nothing yet. @default none */
  readonly answers?: ReadonlyMap<string, Msg | undefined>
}

/** A part of the newest user message that the agent does not get to see. */
export interface SkippedPart {
  readonly messageId: string
  readonly partType: MediaPart['type']
  readonly index: number
}

/** Messages for an agent, and what was left out of them. */
export interface ConvertedMessages {
  readonly messages: Msg[]
  readonly skipped: readonly SkippedPart[]
}

/** What a model is told of a call of the page that its user has passed over. */
export const UNANSWERED_TEXT = 'The tool call was not answered.'

/** Where a message's own metadata stands in `Msg.metadata` and block metadata: under one key, so that a client cannot forge keys an agent acts upon. */
export const CLIENT_METADATA = 'agui.metadata'
/** Where a provider's encrypted value stands, beside {@link CLIENT_METADATA}. */
export const ENCRYPTED_VALUE = 'agui.encryptedValue'

/**
 * Turns AG-UI messages into an agent's (section 18.1): developer and system speak as SYSTEM, reasoning becomes a thinking block
 * of the assistant turn that follows it, activities are left out, tool messages become results, empty messages vanish. Ids are kept.
 * A call has one result at most, and has one once its user has spoken again: models refuse a transcript with a call left open (19.2).
 * @throws AguiInputError for a document, or a handle nobody can resolve, in the newest user message; its text names the type alone
 */
export function toMsgs (messages: readonly Message[], options: ConvertOptions = {}): ConvertedMessages {
  const conversion = new Conversion(messages, options)
  messages.forEach((message, index) => { conversion.add(message, index) })
  conversion.finish()
  return { messages: conversion.messages, skipped: conversion.skipped }
}

/** The text of a message or of its content: the text parts, joined by line breaks; '' where there is none. */
export function getTextContent (source: Message | string | readonly ContentPart[] | undefined): string {
  const content = isMessage(source) ? source.content : source
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.flatMap((part: ContentPart) => part.type === 'text' ? [part.text] : []).join('\n') : ''
}

function isMessage (source: Message | string | readonly ContentPart[] | undefined): source is Message {
  return isObject(source)
}

class Conversion {
  readonly messages: Msg[] = []
  readonly skipped: SkippedPart[] = []
  readonly #newestUser: Message | undefined
  readonly #refuse: boolean
  readonly #documentTypes: readonly string[]
  readonly #newestUserIndex: number
  readonly #answers: ReadonlyMap<string, Msg | undefined>
  /** The one message that is each call's result. */
  readonly #results = new Map<string, ToolMessage>()
  readonly #placed = new Set<string>()
  readonly #toolNames = new Map<string, string>()
  #thinking: ThinkingBlock[] = []

  constructor (messages: readonly Message[], options: ConvertOptions) {
    // Only what was said last may refuse a run: a document further up would keep the thread from ever going on.
    this.#newestUserIndex = messages.findLastIndex((message) => message.role === 'user')
    this.#newestUser = messages[this.#newestUserIndex]
    this.#answers = options.answers ?? new Map()
    this.#refuse = (options.unsupportedContent ?? 'error') === 'error'
    this.#documentTypes = options.documentTypes ?? []
    for (const message of messages) {
      if (message.role === 'tool' && !this.#answers.has(message.toolCallId)) this.#noteResult(message)
      if (message.role === 'assistant') for (const call of message.toolCalls ?? []) this.#toolNames.set(call.id, call.function.name)
    }
  }

  add (message: Message, index: number): void {
    switch (message.role) {
      case 'developer':
      case 'system':
        return this.#push(message, 'SYSTEM', message.content === '' ? [] : [{ type: 'text', text: message.content }])
      case 'user':
        // What was thought before the user spoke belongs to a turn that never came.
        this.#thinking = []
        return this.#push(message, 'USER', this.#userBlocks(message))
      case 'assistant':
        this.#push(message, 'ASSISTANT', this.#assistantBlocks(message))
        return this.#closeCalls(message, index)
      case 'tool':
        return this.#addResult(message)
      case 'reasoning':
        this.#thinking.push({ type: 'thinking', thinking: message.content, ...metadataOf(message) })
        break
      case 'activity':
    }
  }

  /** Adds the answers to calls that the transcript does not show. */
  finish (): void {
    for (const [id, answer] of this.#answers) if (!this.#placed.has(id)) this.#place(id, answer)
  }

  #place (id: string, answer: Msg | undefined): void {
    this.#placed.add(id)
    if (answer !== undefined) this.messages.push(answer)
  }

  #closeCalls ({ toolCalls = [] }: AssistantMessage, index: number): void {
    for (const { id, function: { name } } of toolCalls) {
      if (this.#answers.has(id)) {
        this.#place(id, this.#answers.get(id))
      } else if (index < this.#newestUserIndex && !this.#results.has(id)) {
        this.messages.push({
          id: `agui-unanswered-${id}`,
          role: 'TOOL',
          content: [{ type: 'tool_result', id, name, output: [{ type: 'text', text: UNANSWERED_TEXT }], state: 'error' }],
          metadata: { [MsgMetadata.synthetic]: true }
        })
      }
    }
  }

  /** Several results of one call: this server's own, which has the call's id in its own, beats what a client has made up; otherwise the first. */
  #noteResult (message: ToolMessage): void {
    const { toolCallId, id } = message
    if (!this.#results.has(toolCallId) || id.endsWith(`:${toolCallId}`)) this.#results.set(toolCallId, message)
  }

  #push (message: Exclude<Message, { role: 'activity' }>, role: Msg['role'], content: ContentBlock[]): void {
    if (content.length === 0) return
    this.messages.push({ id: message.id, role, content, ...'name' in message && { name: message.name }, ...metadataOf(message) })
  }

  #userBlocks (message: UserMessage): ContentBlock[] {
    if (typeof message.content === 'string') return message.content === '' ? [] : [{ type: 'text', text: message.content }]
    return this.#blocks(message, message.content)
  }

  #assistantBlocks (message: AssistantMessage): ContentBlock[] {
    const blocks: ContentBlock[] = []
    if (message.content !== undefined && message.content !== '') blocks.push({ type: 'text', text: message.content })
    for (const call of message.toolCalls ?? []) blocks.push(this.#toolUse(call))
    if (blocks.length === 0) return blocks
    const thinking = this.#thinking
    this.#thinking = []
    return [...thinking, ...blocks]
  }

  #toolUse (call: ToolCall): ToolUseBlock {
    return {
      type: 'tool_use',
      id: call.id,
      name: call.function.name,
      input: argumentsOf(call.function.arguments),
      content: call.function.arguments,
      state: this.#isAnswered(call.id) ? 'finished' : 'pending',
      ...metadataOf(call)
    }
  }

  #isAnswered (id: string): boolean {
    return this.#results.has(id) || this.#answers.get(id) !== undefined
  }

  #addResult (message: ToolMessage): void {
    if (message.toolCallId.trim() === '' || this.#results.get(message.toolCallId) !== message) return
    const text = typeof message.content === 'string' ? message.content : undefined
    const parts = typeof message.content === 'string' ? [] : this.#blocks(message, message.content)
    const name = this.#toolNames.get(message.toolCallId)
    this.#push(message, 'TOOL', [{
      type: 'tool_result',
      id: message.toolCallId,
      ...name !== undefined && { name },
      // A result without text is still a result: the call would look unanswered otherwise.
      output: parts.length > 0 ? parts : [{ type: 'text', text: text || message.error || '' }],
      state: message.error === undefined ? 'success' : 'error'
    }])
  }

  #blocks (message: UserMessage | ToolMessage, parts: readonly ContentPart[]): ContentBlock[] {
    return parts.flatMap((part, index): ContentBlock[] => {
      if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }]
      const block = this.#mediaBlock(part)
      if (block !== undefined) return [block]
      if (message === this.#newestUser) {
        if (this.#refuse) throw new AguiInputError(`Content of type "${part.type}" cannot be used here.`)
        this.skipped.push({ messageId: message.id, partType: part.type, index })
      }
      return [{ type: 'text', text: `[Attachment of type ${part.type} that cannot be read here]` }]
    })
  }

  #mediaBlock (part: MediaPart): ContentBlock | undefined {
    const source = sourceOf(part)
    if (source === undefined) return undefined
    if (part.type !== 'document') return { type: part.type, source }
    if (!this.#documentTypes.some((type) => covers(type, part.source.mimeType))) return undefined
    const name = isObject(part.metadata) ? part.metadata['filename'] : undefined
    return { type: 'data', source, ...part.id !== undefined && { id: part.id }, ...typeof name === 'string' && { name } }
  }
}

/** Where a part's bytes are, as agents name it; a provider's handle means nothing to anybody else. */
function sourceOf ({ source }: MediaPart): MediaSource | undefined {
  switch (source.type) {
    case 'data': return { type: 'base64', media_type: source.mimeType, data: source.value }
    case 'url': return { type: 'url', url: source.value, ...source.mimeType !== undefined && { mime_type: source.mimeType } }
    case 'file': return undefined
  }
}

function covers (accepted: string, mimeType: string | undefined): boolean {
  if (mimeType === undefined) return false
  const type = mimeType.toLowerCase().split(';', 1)[0]?.trim()
  return accepted.endsWith('/*') ? type?.startsWith(accepted.slice(0, -1)) === true : type === accepted
}

/** A call's arguments as an object; text that is none counts as no arguments, and stays readable in `content`. */
function argumentsOf (text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? toJson(value) as JsonObject : {} // an object stays one
  } catch {
    // A model's own text: what it meant cannot be asked any more.
    return {}
  }
}

function metadataOf (source: { metadata?: Record<string, unknown>, encryptedValue?: string }): { metadata?: JsonObject } {
  if (source.metadata === undefined && source.encryptedValue === undefined) return {}
  return {
    metadata: {
      ...source.metadata !== undefined && { [CLIENT_METADATA]: toJson(source.metadata) as JsonObject }, // an object stays one
      ...source.encryptedValue !== undefined && { [ENCRYPTED_VALUE]: source.encryptedValue }
    }
  }
}
