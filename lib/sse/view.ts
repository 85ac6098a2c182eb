import type { BusEvent, Cursor, Frame, Position, View } from '../bus/index.ts'
import { escapeSeparators } from '../json-line.ts'
import { checkField, splitLines } from './frame.ts'

/** What stands in a frame's `id`: epoch and sequence, the bare sequence, or no id. */
export type SseIdForm = 'epoch' | 'seq' | 'none'

/** How {@link sseView} frames a topic. */
export interface SseViewOptions {
  /** Views of the same key share one encoding. @default `sse:${id}` */
  readonly key?: string
  /** Form of the `id`. A bare sequence cannot tell one life of a topic from the next. @default 'epoch' */
  readonly id?: SseIdForm
}

/** A {@link View} that can also say under which id a cursor goes to the client. */
export interface SseView extends View {
  /** Text of the `id` field for this cursor; undefined where the view writes no ids. */
  cursorId (cursor: Cursor): string | undefined
}

const TAIL = '\n\n'

/**
 * Frames a topic's events for an event stream: `id: <epoch>.<seq>`, `event` where there is one, `data`.
 *
 * Line breaks in raw text become further `data` lines. In JSON payloads U+0085, U+2028 and U+2029 are escaped, because
 * clients that split by Unicode's line rules tear the frame there; raw text keeps them. The frame of an event whose name
 * holds a line break or NUL is refused (AGT_ERR_SSE_FIELD).
 */
export function sseView (options: SseViewOptions = {}): SseView {
  const id = options.id ?? 'epoch'
  // Made anew only when another topic's events come; one frame object serves them all, see View.
  let epoch = ''
  let prefix = id === 'seq' ? 'id: ' : ''
  const reused = { head: '', data: '', tail: TAIL }
  return {
    key: options.key ?? `sse:${id}`,
    frame (event: BusEvent, at: Position): Frame {
      if (id === 'epoch' && at.epoch !== epoch) {
        epoch = at.epoch
        prefix = `id: ${epoch}.`
      }
      const name = event.event === undefined ? '' : `event: ${checkField('event', event.event)}\n`
      reused.head = id === 'none' ? `${name}data: ` : `${prefix}${event.seq}\n${name}data: `
      reused.data = event.isLine === true || isUsual(event.data) ? event.data : escapeData(event.data)
      return reused
    },
    cursorId (cursor: Cursor): string | undefined {
      if (id === 'none') return undefined
      return id === 'seq' || cursor.epoch === undefined ? String(cursor.seq) : `${cursor.epoch}.${cursor.seq}`
    }
  }
}

/** Five searches for one character each, which the engine does by memory scan: a third of the time of one regular expression. */
function isUsual (data: string): boolean {
  return !(data.includes('\n') || data.includes('\r') || data.includes('\u0085') || data.includes('\u2028') || data.includes('\u2029'))
}

function escapeData (data: string): string {
  return splitLines(isJson(data) ? escapeSeparators(data) : data)
}

function isJson (data: string): boolean {
  try {
    JSON.parse(data)
    return true
  } catch {
    return false // raw text, which is legal: it is sent as it is
  }
}
