import { type ContentBlock, type MediaSource, type ToolResultState } from '../../lib/agent/index.ts'
import { type Profile } from './input.ts'
import { type ContentPart, type PartSource } from './schemas.ts'

/** What the reference tells model and user of a refusal; clients match it. */
export const DENIED_TEXT = 'Permission denied by user'

type Piece = { readonly kind: 'text', text: string } | { readonly kind: 'block', readonly block: ContentBlock }

/** The pieces of a result, in the order they came in. */
export class ToolResult {
  readonly pieces: Piece[] = []

  /** Appends to the text that came last. */
  addText (delta: string): void {
    const last = this.pieces.at(-1)
    if (last?.kind === 'text') last.text += delta
    else this.pieces.push({ kind: 'text', text: delta })
  }

  addBlock (block: ContentBlock): void {
    if (block.type === 'text') this.pieces.push({ kind: 'text', text: block.text })
    else this.pieces.push({ kind: 'block', block })
  }

  /** The text pieces alone, joined by line breaks. */
  get text (): string {
    return this.pieces.flatMap((piece) => piece.kind === 'text' ? [piece.text] : []).join('\n')
  }
}

/** What a TOOL_CALL_RESULT carries (section 9.4): never nothing, and parts only for clients that take them. */
export function resultContent (result: ToolResult, state: ToolResultState, profile: Profile): string | ContentPart[] {
  const { pieces } = result
  if (pieces.length === 0) return state === 'denied' ? DENIED_TEXT : ''
  if (profile === 'v1' && pieces.some((piece) => piece.kind === 'block' && partOf(piece.block) !== undefined)) {
    return pieces.map((piece): ContentPart => piece.kind === 'text'
      ? { type: 'text', text: piece.text }
      : partOf(piece.block) ?? { type: 'text', text: JSON.stringify(piece.block) })
  }
  return pieces.map((piece) => piece.kind === 'text' ? piece.text : blockText(piece.block)).join('\n')
}

/** A media block as a part; undefined for blocks that are no media. */
export function partOf (block: ContentBlock): ContentPart | undefined {
  switch (block.type) {
    case 'image':
    case 'audio':
    case 'video':
      return { type: block.type, source: partSource(block.source) }
    case 'data': {
      const source = partSource(block.source)
      const type = /^(image|audio|video)\//.exec(source.mimeType ?? '')?.[1] as 'image' | 'audio' | 'video' | undefined // the expression matches nothing else
      return { type: type ?? 'document', source, ...block.id !== undefined && { id: block.id }, ...block.name !== undefined && { metadata: { filename: block.name } } }
    }
    default:
      return undefined
  }
}

function partSource (source: MediaSource): PartSource {
  return source.type === 'url'
    ? { type: 'url', value: source.url, ...source.mime_type !== undefined && { mimeType: source.mime_type } }
    : { type: 'data', value: source.data, mimeType: source.media_type }
}

/** A block where only text fits: bytes would come back to the model as text with the next request, so they are named and not spelled out. */
export function blockText (block: ContentBlock): string {
  const part = partOf(block)
  if (part === undefined || part.type === 'text') return JSON.stringify(block)
  return `[${part.type}: ${part.source.type === 'data' ? part.source.mimeType : part.source.value}]`
}
