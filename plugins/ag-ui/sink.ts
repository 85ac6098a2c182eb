import { escapeSeparators, isPlain, quoteLine } from '../../lib/json-line.ts'
import { type AgUiEvent } from './event-schemas.ts'

/** Events that carry a piece of something open: nearly all that a stream consists of. */
export type DeltaType = 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT' | 'TOOL_CALL_ARGS'

/** Something open that deltas are appended to, with the constant part of their JSON made once. */
export interface DeltaBlock {
  readonly type: DeltaType
  readonly id: string
  /** Canonical JSON up to and with the opening quote of the delta. */
  readonly head: string
}

/** The text of a delta's JSON up to its id, between the id and the delta's own text, and behind that. */
export const DELTA_START = {
  TEXT_MESSAGE_CONTENT: '{"type":"TEXT_MESSAGE_CONTENT","messageId":',
  REASONING_MESSAGE_CONTENT: '{"type":"REASONING_MESSAGE_CONTENT","messageId":',
  TOOL_CALL_ARGS: '{"type":"TOOL_CALL_ARGS","toolCallId":'
} as const satisfies Record<DeltaType, string>
export const DELTA_MIDDLE = ',"delta":"'
export const DELTA_END = '"}'

/** Prepares the deltas of a message or a call. */
export function deltaBlock (type: DeltaType, id: string): DeltaBlock {
  return { type, id, head: DELTA_START[type] + quoteLine(id) + DELTA_MIDDLE }
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

/** What every line of JSON may promise to the log that takes it. */
const LINE = { isLine: true } as const

/** Takes one line of JSON. */
export type EmitLine = (data: string, options?: typeof LINE) => void

/** Writes events as lines of JSON. */
export class JsonSink implements EventSink {
  /** Where the lines go; set before the first event. */
  emit: EmitLine = () => {}

  event (event: AgUiEvent): void {
    this.emit(escapeSeparators(JSON.stringify(event)), LINE)
  }

  delta (block: DeltaBlock, delta: string): void {
    this.emit(block.head + (isPlain(delta) ? delta : quoteLine(delta).slice(1, -1)) + DELTA_END, LINE)
  }
}
