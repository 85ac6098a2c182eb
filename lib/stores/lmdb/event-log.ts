import { EventList } from '../../bus/index.ts'
import type { AppendResult, EventLog, Fold, LogEvents, LogLimits, LogPage, SaveFoldResult } from '../event-log.ts'
import { placeOf } from '../rules/log.ts'
import type { RunKey } from '../run-key.ts'
import { foldBytes, foldOf, keepFold } from './fold.ts'
import { runHashOf } from './keys.ts'
import type { LmdbParts } from './parts.ts'

/** {@link EventLog} in LMDB. An append reads and writes two small entries beside its block, and parses nothing. */
export class LmdbEventLog implements EventLog {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
  }

  async append (key: RunKey, fence: number, firstSeq: number, events: LogEvents, limits?: LogLimits): Promise<AppendResult> {
    const { runs, log, space, queue } = this.#parts
    const hash = runHashOf(key)
    const block = events.length === 0 ? undefined : EventList.blockOf(events)
    const size = block?.bytes ?? 0
    return await queue.write((): AppendResult => {
      const run = runs.findHash(hash)
      if (run === undefined) return { kind: 'gone' }
      const { meta } = run
      if (meta.fence !== fence) return { kind: 'fenced', fence: meta.fence }
      const place = placeOf(meta, firstSeq, block?.length ?? 0)
      if (place === 'elsewhere') return { kind: 'misplaced', last: meta.last }
      if (place === 'there' || block === undefined) return { kind: 'ok', last: meta.last }
      space.need(size)
      const next = log.append(hash, meta, block, limits)
      runs.setMeta(run, next)
      return { kind: 'ok', last: next.last }
    }, size)
  }

  async read (key: RunKey, after: number, limit: number): Promise<LogPage | undefined> {
    const { runs, log } = this.#parts
    const run = runs.find(key)
    return run && log.read(run.hash, run.meta, after, limit)
  }

  async saveFold (key: RunKey, fence: number, fold: Fold): Promise<SaveFoldResult> {
    const { runs, queue } = this.#parts
    const stored = foldBytes(fold)
    return await queue.write((): SaveFoldResult => {
      const run = runs.find(key)
      if (run === undefined) return { kind: 'gone' }
      if (run.meta.fence !== fence) return { kind: 'fenced', fence: run.meta.fence }
      keepFold(runs, run, stored)
      return { kind: 'ok' }
    })
  }

  async loadFold (key: RunKey): Promise<Fold | undefined> {
    const { runs } = this.#parts
    const run = runs.find(key)
    return run && foldOf(runs, run)
  }
}
