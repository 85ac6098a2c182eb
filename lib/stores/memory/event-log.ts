import type { AppendResult, EventLog, Fold, LogEvents, LogLimits, LogPage, SaveFoldResult } from '../event-log.ts'
import type { RunKey } from '../run-key.ts'
import { placeOf } from '../rules/log.ts'
import { edgeOf, foldOf, type MemoryRun, type MemoryState } from './state.ts'

/** {@link EventLog} in memory. */
export class MemoryEventLog implements EventLog {
  readonly #state: MemoryState

  constructor (state: MemoryState) {
    this.#state = state
  }

  async append (key: RunKey, fence: number, firstSeq: number, events: LogEvents, limits?: LogLimits): Promise<AppendResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'gone' }
    if (run.record.fence !== fence) return { kind: 'fenced', fence: run.record.fence }
    switch (placeOf(edgeOf(run), firstSeq, events.length)) {
      case 'next': appendTo(this.#state, run, events, limits); break
      case 'there': break
      case 'elsewhere': return { kind: 'misplaced', last: run.log.last }
    }
    return { kind: 'ok', last: run.log.last }
  }

  async read (key: RunKey, after: number, limit: number): Promise<LogPage | undefined> {
    return this.#state.find(key)?.log.read(after, limit)
  }

  async saveFold (key: RunKey, fence: number, fold: Fold): Promise<SaveFoldResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'gone' }
    if (run.record.fence !== fence) return { kind: 'fenced', fence: run.record.fence }
    keepFold(run, fold)
    return { kind: 'ok' }
  }

  async loadFold (key: RunKey): Promise<Fold | undefined> {
    const run = this.#state.find(key)
    return run && foldOf(run)
  }
}

/** Appends what `placeOf` found to be next, and keeps the limits. */
export function appendTo (state: MemoryState, run: MemoryRun, events: LogEvents, limits: LogLimits | undefined): void {
  const { maxLogBytes, maxTotalLogBytes } = state.options
  const before = run.log.bytes
  run.log.append(events)
  run.log.trim(limits, maxLogBytes)
  state.logBytes += run.log.bytes - before
  if (state.logBytes <= maxTotalLogBytes) return
  while (state.logBytes > maxTotalLogBytes && state.dropOldestEnded());
  if (state.logBytes <= maxTotalLogBytes) return
  const kept = run.log.bytes
  run.log.trim(undefined, 0)
  state.logBytes += run.log.bytes - kept
}

/** Keeps the fold unless a later one is there. */
export function keepFold (run: MemoryRun, fold: Fold): void {
  if (run.fold === undefined || run.fold.seq < fold.seq) run.fold = fold
}
