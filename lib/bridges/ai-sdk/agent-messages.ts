import type { AssistantModelMessage, DataContent, FilePart, ImagePart, ModelMessage, ToolCallPart, ToolResultPart, UserModelMessage } from 'ai'
import { type ContentBlock, isObject, type JsonObject, type MediaSource, type Msg, newId, toJson, type ToolResultBlock } from '../../agent/index.ts'
import { metadataKeys, withProviderMetadata } from './provider-metadata.ts'
import type { OutputPart, ToolOutput } from './tool-output.ts'

type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number]

/**
 * Turns messages of `ai` into an agent's: for conversations that were kept in the SDK's form. Approval requests and their
 * answers are left out; they are records of the server here, not pieces of a conversation.
 */
export function toAgentMessages (messages: readonly ModelMessage[]): Msg[] {
  return messages.flatMap(toMessage)
}

function toMessage (message: ModelMessage): Msg[] {
  switch (message.role) {
    case 'system': return msg('SYSTEM', textBlocks(message.content))
    case 'user': return msg('USER', userBlocks(message.content))
    case 'assistant': return msg('ASSISTANT', assistantBlocks(message.content))
    case 'tool': return msg('TOOL', message.content.flatMap((part) => part.type === 'tool-result' ? [resultBlock(part)] : []))
  }
}

function msg (role: Msg['role'], content: ContentBlock[]): Msg[] {
  return content.length === 0 ? [] : [{ id: newId(), role, content }]
}

function textBlocks (text: string): ContentBlock[] {
  return text === '' ? [] : [{ type: 'text', text }]
}

function userBlocks (content: UserModelMessage['content']): ContentBlock[] {
  if (typeof content === 'string') return textBlocks(content)
  return content.flatMap((part) => part.type === 'text' ? textBlocks(part.text) : [mediaBlock(part)])
}

function assistantBlocks (content: AssistantModelMessage['content']): ContentBlock[] {
  return typeof content === 'string' ? textBlocks(content) : content.flatMap(assistantBlock)
}

function assistantBlock (part: AssistantPart): ContentBlock[] {
  switch (part.type) {
    case 'text': return textBlocks(part.text)
    case 'reasoning': return [{ type: 'thinking', thinking: part.text, ...withProviderMetadata(part.providerOptions) }]
    case 'file': return [mediaBlock(part)]
    case 'tool-call': return [callBlock(part)]
    case 'tool-result': return [resultBlock(part)]
    case 'tool-approval-request': return []
  }
}

function callBlock ({ toolCallId, toolName, input: given, providerExecuted, providerOptions }: ToolCallPart): ContentBlock {
  const input = toJson(given) ?? {}
  return {
    type: 'tool_use',
    id: toolCallId,
    name: toolName,
    // An object stays one.
    input: isObject(input) ? input as JsonObject : {},
    content: JSON.stringify(input),
    metadata: { ...withProviderMetadata(providerOptions).metadata, ...providerExecuted === true && { [metadataKeys.executed]: true } }
  }
}

function mediaBlock (part: ImagePart | FilePart): ContentBlock {
  if (part.type === 'image') return { type: 'image', source: sourceOf(part.image, part.mediaType) }
  return { type: 'data', source: sourceOf(part.data, part.mediaType), ...part.filename !== undefined && { name: part.filename } }
}

function sourceOf (data: DataContent | URL, mediaType = 'application/octet-stream'): MediaSource {
  if (data instanceof URL) return { type: 'url', url: data.href, mime_type: mediaType }
  // `ai` tells texts that are addresses by their scheme, too; base64 holds no colon.
  if (typeof data === 'string') return data.includes(':') ? { type: 'url', url: data, mime_type: mediaType } : { type: 'base64', media_type: mediaType, data }
  const bytes = data instanceof ArrayBuffer ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  return { type: 'base64', media_type: mediaType, data: bytes.toString('base64') }
}

function resultBlock ({ toolCallId, toolName, output }: ToolResultPart): ToolResultBlock {
  const state = output.type === 'execution-denied' ? 'denied' : output.type === 'error-text' || output.type === 'error-json' ? 'error' : 'success'
  return { type: 'tool_result', id: toolCallId, name: toolName, output: outputBlocks(output), metadata: {}, state }
}

function outputBlocks (output: ToolOutput): ContentBlock[] {
  switch (output.type) {
    case 'text': case 'error-text': return textBlocks(output.value)
    case 'json': case 'error-json': return textBlocks(JSON.stringify(output.value))
    case 'execution-denied': return textBlocks(output.reason ?? '')
    case 'content': return output.value.flatMap(outputBlock)
  }
}

function outputBlock (part: OutputPart): ContentBlock[] {
  switch (part.type) {
    case 'text': return textBlocks(part.text)
    case 'media': case 'file-data': return [{ type: 'data', source: sourceOf(part.data, part.mediaType) }]
    case 'image-data': return [{ type: 'image', source: sourceOf(part.data, part.mediaType) }]
    case 'image-url': return [{ type: 'image', source: { type: 'url', url: part.url } }]
    case 'file-url': return [{ type: 'data', source: { type: 'url', url: part.url, ...part.mediaType !== undefined && { mime_type: part.mediaType } } }]
    // A provider's own handles: nobody else can read them.
    case 'file-id': case 'image-file-id': case 'custom': return []
  }
}
