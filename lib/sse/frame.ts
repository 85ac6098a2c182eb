/// <reference lib="es2024.string" />
import { SseFieldError } from './errors.ts'

/** One block of an event stream; at least one field is given. */
export interface SseFrame {
  /** Cursor the client sends back as Last-Event-ID; the empty string makes it forget its own. */
  readonly id?: string | number
  /** Name the client dispatches the event under. @default 'message', by the client */
  readonly event?: string
  /** Payload; each line of it becomes a `data` line. Absent: nothing is dispatched. */
  readonly data?: string
  /** Milliseconds the client waits before it reconnects. */
  readonly retry?: number
  /** Text that every client skips. */
  readonly comment?: string
}

const LINE_END = /\r\n|\r|\n/g
const FORGES = /[\r\n\0]/

/**
 * Writes one block of an event stream: `\n` only, closed by a blank line.
 *
 * What the caller passes cannot become another field: a line break or NUL in `id`, `event` or `comment` is refused,
 * one in `data` starts a further `data` line. Unpaired surrogates become U+FFFD, as UTF-8 cannot hold them.
 * WHATWG HTML, "9.2.5 Parsing an event stream".
 *
 * @throws AGT_ERR_SSE_FIELD
 */
export function encodeFrame (frame: SseFrame): string {
  let text = ''
  if (frame.comment !== undefined) text += `: ${checkField('comment', frame.comment)}\n`
  if (frame.id !== undefined) text += `id: ${checkField('id', String(frame.id))}\n`
  if (frame.event !== undefined) text += `event: ${checkField('event', frame.event)}\n`
  if (frame.retry !== undefined) text += `retry: ${checkRetry(frame.retry)}\n`
  if (frame.data !== undefined) text += `data: ${splitLines(frame.data)}\n`
  return `${text}\n`.toWellFormed()
}

/** Continues each further line of `data` with a `data` field of its own. */
export function splitLines (data: string): string {
  return data.replace(LINE_END, '\ndata: ')
}

/** Gives the value back if it can stand on one line. @throws AGT_ERR_SSE_FIELD */
export function checkField (field: 'id' | 'event' | 'comment', value: string): string {
  if (FORGES.test(value)) throw new SseFieldError(field, 'holds a line break or NUL')
  return value
}

function checkRetry (value: number): number {
  // A client skips a field that is not all digits, silently.
  if (!Number.isSafeInteger(value) || value < 0) throw new SseFieldError('retry', 'is no whole number of milliseconds')
  return value
}
