import { type Topic } from '../../lib/bus/index.ts'
import { TaskError } from './errors.ts'
import { type GapReason } from './wire.ts'

const SEQUENCE = /^\d{1,15}$/

/** Where a reader asks to go on. */
export type AskedCursor =
  | { readonly kind: 'none' }
  | { readonly kind: 'after', readonly seq: number }
  /** A Last-Event-ID that is no sequence: an EventSource could not read a refusal. */
  | { readonly kind: 'invalid' }

/** Where reading starts. */
export interface StartPoint {
  readonly after: number
  readonly gap?: GapReason
}

/**
 * Reads the cursor of a request. The query counts where both are given, or the larger one where that is asked for (agent-protocol 5.2).
 * @throws AGT_ERR_TASK_INVALID_FROM_SEQ
 */
export function readCursor (fromSeq: string | undefined, lastEventId: string | undefined, precedence: 'query' | 'max'): AskedCursor {
  if (fromSeq !== undefined && !SEQUENCE.test(fromSeq)) throw new TaskError('invalid_from_seq', 'from_seq is a whole number from 0 on')
  const query = fromSeq === undefined ? undefined : Number(fromSeq)
  if (query !== undefined && precedence === 'query') return { kind: 'after', seq: query }
  const header = lastEventId === undefined || lastEventId === '' ? undefined : lastEventId.trim()
  if (header === undefined) return query === undefined ? { kind: 'none' } : { kind: 'after', seq: query }
  if (!SEQUENCE.test(header)) return query === undefined ? { kind: 'invalid' } : { kind: 'after', seq: query }
  return { kind: 'after', seq: Math.max(query ?? 0, Number(header)) }
}

/** Finds where a reader starts. The caller attaches in the same tick. */
export function startOf ({ oldest, last }: Pick<Topic, 'oldest' | 'last'>, asked: AskedCursor): StartPoint {
  const kept = oldest - 1
  if (asked.kind === 'invalid') return { after: kept, gap: 'invalid' }
  const seq = asked.kind === 'none' ? 0 : asked.seq
  if (seq > last) return { after: kept, gap: 'ahead' }
  return seq < kept ? { after: kept, gap: 'evicted' } : { after: seq }
}
