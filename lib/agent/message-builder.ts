import type { ContentBlock, ToolResultState, ToolUseBlock } from './blocks.ts'
import { parseArguments } from './decode-message.ts'
import type { JsonObject } from './json.ts'

/** What a {@link MessagePart} becomes. */
export type PartKind = 'text' | 'thinking' | 'data' | 'hint' | 'call' | 'result'

/** A piece of a message that is still growing; the {@link MessageBuilder} owns it. */
export interface MessagePart {
  readonly kind: PartKind
  readonly id: string
  /** Name of the tool or file, source of the hint; empty for none. */
  name: string
  /** Text, base64, or raw arguments so far. */
  text: string
  metadata: JsonObject | undefined
  mediaType: string | undefined
  url: string | undefined
  state: ToolResultState | undefined
  /** Output of a result before {@link MessagePart.text}. */
  readonly output: ContentBlock[]
}

/** Collects what a run says, in the order in which the pieces began. */
export class MessageBuilder {
  readonly #parts: MessagePart[] = []
  readonly #asking = new Set<string>()

  /** Begins a piece. */
  add (kind: PartKind, id: string, name = ''): MessagePart {
    const part: MessagePart = {
      kind, id, name, text: '', metadata: undefined, mediaType: undefined, url: undefined, state: undefined, output: []
    }
    this.#parts.push(part)
    return part
  }

  /** Marks a call as waiting for a confirmation, or as not waiting any more. */
  ask (toolCallId: string, isAsking: boolean): void {
    if (isAsking) this.#asking.add(toolCallId)
    else this.#asking.delete(toolCallId)
  }

  /** The blocks so far; nothing in them changes later. */
  build (): ContentBlock[] {
    const finished = new Set<string>()
    for (const { kind, id, state } of this.#parts) {
      if (kind === 'result' && state !== undefined && state !== 'running') finished.add(id)
    }
    return this.#parts.flatMap((part) => this.#block(part, finished))
  }

  #block (part: MessagePart, finished: ReadonlySet<string>): ContentBlock[] {
    const { id, name, text, metadata } = part
    switch (part.kind) {
      case 'text': return text === '' ? [] : [{ type: 'text', text }]
      case 'thinking': return [{ type: 'thinking', thinking: text, ...metadata && { metadata } }]
      case 'hint': return [{ type: 'hint', id, hint: text, ...name !== '' && { source: name } }]
      case 'data': return [{ type: 'data', id, ...name !== '' && { name }, source: mediaSource(part) }]
      case 'call': return [this.#call(part, finished)]
      case 'result': return [{
        type: 'tool_result', id, name, output: resultOutput(part), metadata: metadata ?? {}, state: part.state ?? 'running'
      }]
    }
  }

  #call ({ id, name, text, metadata }: MessagePart, finished: ReadonlySet<string>): ToolUseBlock {
    const state = finished.has(id) ? 'finished' : this.#asking.has(id) ? 'asking' : 'pending'
    return { type: 'tool_use', id, name, input: parseArguments(text), content: text, metadata: metadata ?? {}, state }
  }
}

/** Turns the text that a result has collected into a block, so that what follows stands behind it. */
export function flushText (part: MessagePart): void {
  if (part.text === '') return
  part.output.push({ type: 'text', text: part.text })
  part.text = ''
}

function resultOutput ({ output, text }: MessagePart): ContentBlock[] {
  return text === '' ? [...output] : [...output, { type: 'text', text }]
}

function mediaSource ({ url, mediaType, text }: MessagePart): { type: 'url', url: string, mime_type?: string } | { type: 'base64', media_type: string, data: string } {
  if (url !== undefined) return { type: 'url', url, ...mediaType !== undefined && { mime_type: mediaType } }
  return { type: 'base64', media_type: mediaType ?? 'application/octet-stream', data: text }
}
