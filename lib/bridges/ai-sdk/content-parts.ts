import type { FilePart, ImagePart, TextPart } from 'ai'
import { type ContentBlock, type MediaSource } from '../../agent/index.ts'

type MediaBlock = Extract<ContentBlock, { readonly source: MediaSource }>

/** Media types of blocks whose source does not say its own. */
const fallbacks: Readonly<Record<MediaBlock['type'], string>> = {
  image: 'image/*', audio: 'audio/*', video: 'video/*', data: 'application/octet-stream'
}

/** A text or media block as a message's part; undefined for what is neither, and for empty text. */
export function toContentPart (block: ContentBlock): TextPart | ImagePart | FilePart | undefined {
  switch (block.type) {
    case 'text': return block.text === '' ? undefined : { type: 'text', text: block.text }
    case 'image': case 'audio': case 'video': case 'data': return toMediaPart(block)
    case 'thinking': case 'hint': case 'tool_use': case 'tool_result': return undefined
  }
}

function toMediaPart (block: MediaBlock): TextPart | ImagePart | FilePart {
  const mediaType = mediaTypeOf(block)
  const data = dataOf(block.source)
  if (data === undefined) return { type: 'text', text: `[Attachment of type ${block.type} whose address cannot be read]` }
  if (mediaType.startsWith('image/')) return { type: 'image', image: data, ...mediaType !== 'image/*' && { mediaType } }
  return { type: 'file', data, mediaType, ...block.type === 'data' && block.name !== undefined && { filename: block.name } }
}

/** The media type of a block: what its source says, else the one its kind suggests. */
export function mediaTypeOf ({ type, source }: MediaBlock): string {
  return (source.type === 'base64' ? source.media_type : source.mime_type) ?? fallbacks[type]
}

/** An address only as one: a text would be tried as base64. */
function dataOf (source: MediaSource): URL | string | undefined {
  return source.type === 'base64' ? source.data : URL.canParse(source.url) ? new URL(source.url) : undefined
}
