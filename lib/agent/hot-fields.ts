import { wellFormed } from './json.ts'
import type { DeltaType } from './open-item.ts'

/** What the fast path reads of an event. */
export interface HotFields {
  readonly type?: unknown
  readonly source?: unknown
  readonly replyId?: unknown
  readonly blockId?: unknown
  readonly toolCallId?: unknown
  readonly toolCallName?: unknown
  readonly delta?: unknown
  readonly metadata?: unknown
  readonly id?: unknown
  readonly createdAt?: unknown
}

const deltaTypes: ReadonlySet<unknown> = new Set<DeltaType>([
  'TEXT_BLOCK_DELTA', 'THINKING_BLOCK_DELTA', 'DATA_BLOCK_DELTA', 'TOOL_CALL_DELTA', 'TOOL_RESULT_TEXT_DELTA'
])

/** True for the events that come once a token. */
export function isDeltaType (type: unknown): type is DeltaType {
  return deltaTypes.has(type)
}

/** The fields of what has none. */
export const nothing: HotFields = {}

/** What an agent yielded, to be read for these members; each of them once, for a getter may throw or change its mind. */
export function hotFieldsOf (event: unknown): HotFields {
  return typeof event === 'object' && event !== null ? event : nothing
}

/** A name as text; numbers are names too, anything else is none. */
export function nameOf (value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : wellFormed(value)
  return typeof value === 'number' ? String(value) : undefined
}
