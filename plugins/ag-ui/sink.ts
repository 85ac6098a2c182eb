import { type AgUiEvent } from './event-schemas.ts'

/** Events that carry a piece of something open: nearly all that a stream consists of. */
export type DeltaType = 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT' | 'TOOL_CALL_ARGS'

/** Something open that deltas are appended to, with the constant part of their JSON made once. */
export interface DeltaBlock {
  readonly type: DeltaType
  readonly id: string
  /** Canonical JSON up to the delta's value. */
  readonly head: string
}

/** Prepares the deltas of a message or a call. */
export function deltaBlock (type: DeltaType, id: string): DeltaBlock {
  const key = type === 'TOOL_CALL_ARGS' ? 'toolCallId' : 'messageId'
  return { type, id, head: `{"type":"${type}","${key}":${JSON.stringify(id)},"delta":` }
}

/** The event that a delta of a block is. */
export function deltaEvent ({ type, id }: DeltaBlock, delta: string): AgUiEvent {
  return type === 'TOOL_CALL_ARGS' ? { type, toolCallId: id, delta } : { type, messageId: id, delta }
}

/** Where mapped events go, in order. */
export interface EventSink {
  /** Takes one event; it belongs to the sink from then on. */
  event (event: AgUiEvent): void
  /** Takes one delta of an open block; means the same as `event(deltaEvent(block, delta))`. */
  delta (block: DeltaBlock, delta: string): void
}

/** Writes events as lines of JSON. */
export class JsonSink implements EventSink {
  /** Where the lines go; set before the first event. */
  emit: (data: string) => void = () => {}

  event (event: AgUiEvent): void {
    this.emit(JSON.stringify(event))
  }

  delta (block: DeltaBlock, delta: string): void {
    this.emit(`${block.head}${quote(delta)}}`)
  }
}

// Everything JSON escapes; surrogates too, because a lone half must not reach UTF-8.
const SPECIAL = /["\\\u0000-\u001f\ud800-\udfff]/ // eslint-disable-line no-control-regex

/** A string as JSON. Most deltas need no escaping, and a look costs less than half of JSON.stringify. */
export function quote (text: string): string {
  return SPECIAL.test(text) ? JSON.stringify(text) : `"${text}"`
}
