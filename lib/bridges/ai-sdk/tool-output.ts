import type { ToolResultPart } from 'ai'
import { type ContentBlock, textOf, type ToolResultState } from '../../agent/index.ts'
import { mediaTypeOf } from './content-parts.ts'

/** What a model is shown of a tool's result. */
export type ToolOutput = ToolResultPart['output']

/** A piece of a result that is more than text. */
export type OutputPart = Extract<ToolOutput, { readonly type: 'content' }>['value'][number]

/** The result of a call that nobody answered: providers refuse a conversation in which a call has none. */
export const unanswered: ToolOutput = { type: 'error-text', value: 'The call was not answered: whether it did anything is unknown.' }

/** A result as the model is shown it: denials with their reason, errors as errors, media as media. */
export function toToolOutput (blocks: readonly ContentBlock[], state: ToolResultState): ToolOutput {
  const text = textOf(blocks)
  switch (state) {
    case 'denied': return { type: 'execution-denied', ...text !== '' && { reason: text } }
    // Some providers refuse a result without any text.
    case 'error': case 'interrupted': return { type: 'error-text', value: text || `The call ended: ${state}.` }
    case 'success': case 'running':
      return blocks.every(({ type }) => type === 'text') ? { type: 'text', value: text } : { type: 'content', value: blocks.flatMap(toOutputPart) }
  }
}

function toOutputPart (block: ContentBlock): OutputPart[] {
  switch (block.type) {
    case 'text': return [{ type: 'text', text: block.text }]
    case 'image': case 'audio': case 'video': case 'data': {
      const mediaType = mediaTypeOf(block)
      const isImage = mediaType.startsWith('image/')
      if (block.source.type === 'base64') return [{ type: isImage ? 'image-data' : 'file-data', data: block.source.data, mediaType }]
      if (!URL.canParse(block.source.url)) return []
      return [isImage ? { type: 'image-url', url: block.source.url } : { type: 'file-url', url: block.source.url }]
    }
    case 'thinking': case 'hint': case 'tool_use': case 'tool_result': return []
  }
}
