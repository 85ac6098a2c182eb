import type { RunKey } from './run-key.ts'

/** One event of a run's log: the shape of the bus's own event, kept by reference where the store lives in the process. */
export interface LogEvent {
  /** Dense from 1, given by the owner (R6). */
  readonly seq: number
  /** The event's name, where the protocol has one. */
  readonly event?: string | undefined
  /** The canonical payload; opaque to the store (R10). */
  readonly data: string
  /** Detail level of the event, for narrowed views. */
  readonly level?: number | undefined
}

/** An event with the members that it has, and no others. */
export function logEvent (seq: number, data: string, event?: string, level?: number): LogEvent {
  if (level === undefined) return event === undefined ? { seq, data } : { seq, event, data }
  return event === undefined ? { seq, data, level } : { seq, event, data, level }
}

/** Events to append: an array, or the block that the bus keeps itself. */
export interface LogEvents extends Iterable<LogEvent> {
  readonly length: number
}

/** How much of a log is kept. Trimming removes from the old end, whole appends at a time, and never the newest append. */
export interface LogLimits {
  /** At least this many of the newest events stay, at most about twice as many. @default no limit */
  readonly maxEvents?: number
  /** Rough bytes of payload that stay. Stronger than `maxEvents`. @default no limit */
  readonly maxBytes?: number
  /** Nothing after this sequence is trimmed for `maxEvents` or `maxBytes`: pass the sequence of the last stored fold (R12). @default no floor */
  readonly floor?: number
}

/**
 * - `ok`: the log ends at `last`, and every event given is in it, from now or from before.
 * - `fenced`: another owner has the run; stop telling anybody anything (R4, R8).
 * - `gone`: the run and its log are no more (expired, deleted); nothing was created (R5).
 * - `misplaced`: the log ends at `last` and the append neither continues nor repeats it; nothing was written. Append again from
 *   `last + 1`: that is how an owner re-appends a tail that a restarted backend has lost (R9).
 */
export type AppendResult =
  | { readonly kind: 'ok', readonly last: number }
  | { readonly kind: 'fenced', readonly fence: number }
  | { readonly kind: 'gone' }
  | { readonly kind: 'misplaced', readonly last: number }

/** A stretch of a log together with the edges it has at that moment. */
export interface LogPage {
  /** The oldest sequence still kept, read from the log, never computed; `last + 1` when nothing is kept. */
  readonly oldest: number
  /** The newest sequence, 0 before the first append. */
  readonly last: number
  /** Events with `seq > after`, dense from the later of `after + 1` and `oldest`, at most `limit`. */
  readonly events: readonly LogEvent[]
}

/** The folded state of a log up to and including `seq` (R12). */
export interface Fold {
  readonly seq: number
  /** A text of whoever folds, mostly JSON; kept as it is. */
  readonly state: string
}

/** `ok` also where a fold of the same or a later sequence is already kept: folds never go back. */
export type SaveFoldResult =
  | { readonly kind: 'ok' }
  | { readonly kind: 'fenced', readonly fence: number }
  | { readonly kind: 'gone' }

/**
 * The append-only log of each run. Atomic on one run key; rejects only when the store can not be reached.
 *
 * `after` of `read` may be anything: the caller compares it with `oldest` and `last` of the page (behind `oldest - 1` is a gap, beyond `last` is
 * a cursor of another life) and answers its client accordingly.
 */
export interface EventLog {
  /**
   * Adds events `firstSeq`, `firstSeq + 1`, ... under the caller's fence. Appends of one owner are issued in order; the next may be issued
   * before the last has settled. To repeat one whose acknowledgement was lost is success: an append whose events are all in the log
   * since this fence began is `ok` (R5). An array is the caller's to reuse, a block and the events of either are not to be changed any more.
   */
  append (key: RunKey, fence: number, firstSeq: number, events: LogEvents, limits?: LogLimits): Promise<AppendResult>

  /** Events after `after`, at most `limit` (1 or more); nothing for a run that is not there. Reading never creates anything. */
  read (key: RunKey, after: number, limit: number): Promise<LogPage | undefined>

  /** Keeps `fold` in place of an older one. */
  saveFold (key: RunKey, fence: number, fold: Fold): Promise<SaveFoldResult>

  /** The latest fold, or nothing. */
  loadFold (key: RunKey): Promise<Fold | undefined>
}
