import { type Cursor, parseCursor } from './cursor.ts'
import type { Gap } from './gap.ts'
import type { TopicLog } from './topic-log.ts'

/** What a reader asks for. */
export interface StartOptions {
  readonly after?: Cursor | string | undefined
  readonly from?: 'live' | 'start' | undefined
  readonly upTo?: 'stored' | 'last' | undefined
}

/** Where reading starts: behind `seq`, after telling of the gap if there is one. */
export interface Start {
  readonly seq: number
  readonly gap?: Gap['reason']
}

/** Finds where a reader starts; `hasLost` tells whether events after a sequence are gone. The caller attaches in the same tick. */
export function startOf (log: TopicLog, options: StartOptions, hasLost: (seq: number) => boolean): Start {
  if (options.after === undefined && options.from === 'live') return { seq: options.upTo === 'last' ? log.last : log.stored }
  const kept = log.oldest - 1
  const cursor = readCursor(options.after ?? { seq: 0 })
  if (cursor === undefined) return { seq: kept, gap: 'invalid' }
  // Beyond the end of its own life a cursor names what was told and not kept, whatever was appended in its place since (R1).
  const last = cursor.epoch === undefined ? log.last : log.lastOf(cursor.epoch)
  if (last === undefined) return { seq: kept, gap: 'epoch' }
  if (cursor.seq > last) return { seq: kept, gap: 'ahead' }
  if (hasLost(cursor.seq)) return { seq: kept, gap: 'trimmed' }
  return { seq: Math.max(cursor.seq, kept) }
}

/** The cursor that was given, if it is one. */
export function readCursor (after: Cursor | string): Cursor | undefined {
  const cursor = typeof after === 'string' ? parseCursor(after) : after
  return cursor !== undefined && Number.isSafeInteger(cursor.seq) && cursor.seq >= 0 ? cursor : undefined
}
