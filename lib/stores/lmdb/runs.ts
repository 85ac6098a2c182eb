import { EventList } from '../../bus/index.ts'
import type { LeaseRequest } from '../leases.ts'
import { newLease } from '../rules/lease.ts'
import { placeOf } from '../rules/log.ts'
import { frozenPatch, isRetry, isStale, newRecord } from '../rules/record.ts'
import type { IndexEntry } from '../run-index.ts'
import type { RunKey } from '../run-key.ts'
import type {
  Barrier, CommitResult, CreateResult, Expected, ExpectedAtBarrier, NewRun, RunPatch, RunRecord, RunStore, UpdateResult
} from '../run-store.ts'
import { foldBytes, keepFold } from './fold.ts'
import { runHashOf } from './keys.ts'
import type { LmdbParts } from './parts.ts'

/** {@link RunStore} in LMDB. What an operation decides and what it writes is one transaction. */
export class LmdbRuns implements RunStore {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
  }

  async create (init: NewRun, lease: LeaseRequest): Promise<CreateResult> {
    const { runs, eraser, space, queue } = this.#parts
    const draft = newRecord(init, lease, 0)
    const size = JSON.stringify(draft).length
    return await queue.write((): CreateResult => {
      const found = runs.find(init.key)
      if (found !== undefined) {
        const { createOp, record } = runs.record(found)
        return { kind: createOp === lease.op ? 'created' : 'exists', record }
      }
      space.need(size)
      const hash = runHashOf(init.key)
      if (runs.exists(hash)) {
        // One whose time has come and that no sweep has met yet: its lists are the new run's from now on.
        const isListed = runs.lists.entry(hash) !== undefined
        eraser.erase(hash)
        if (isListed) runs.lists.add(hash, entryOf(draft))
      }
      const record = Object.freeze({ ...draft, updatedAt: runs.now })
      runs.setLease(runs.add(hash, record, lease.op), init.key, newLease(lease, runs.now))
      return { kind: 'created', record }
    })
  }

  async get (key: RunKey): Promise<RunRecord | undefined> {
    const { runs } = this.#parts
    const found = runs.find(key)
    return found && runs.record(found).record
  }

  async update (key: RunKey, expected: Expected, patch: RunPatch): Promise<UpdateResult> {
    const { runs, queue } = this.#parts
    const change = frozenPatch(patch)
    return await queue.write((): UpdateResult => {
      const found = runs.find(key)
      if (found === undefined) return { kind: 'missing' }
      const stored = runs.record(found)
      if (isRetry(stored, expected)) return { kind: 'ok', record: stored.record }
      if (isStale(stored.record, expected, patch)) return { kind: 'stale', record: stored.record }
      return { kind: 'ok', record: runs.change(found, stored, change, expected.op).record }
    })
  }

  async commit (key: RunKey, expected: ExpectedAtBarrier, barrier: Barrier): Promise<CommitResult> {
    const { runs, log, queue } = this.#parts
    const { patch, firstSeq, events, limits, closeInterrupts = false } = barrier
    const change = frozenPatch(patch)
    const block = events.length === 0 ? undefined : EventList.blockOf(events)
    const opened = structuredClone(barrier.interrupts ?? [])
    const fold = barrier.fold && foldBytes(barrier.fold)
    return await queue.write((): CommitResult => {
      const found = runs.find(key)
      if (found === undefined) return { kind: 'missing' }
      const stored = runs.record(found)
      const { record } = stored
      if (isRetry(stored, expected)) return { kind: 'ok', record }
      const interrupts = runs.interrupts(found)
      if (isStale(record, expected, patch) || interrupts.isInUse(opened)) return { kind: 'stale', record }
      const place = placeOf(found.meta, firstSeq, block?.length ?? 0)
      if (place === 'elsewhere') return { kind: 'misplaced', last: found.meta.last, record }

      let run = found
      if (place === 'next' && block !== undefined) run = runs.setMeta(run, log.append(run.hash, run.meta, block, limits))
      if (closeInterrupts) interrupts.close()
      interrupts.open(record, opened)
      if (interrupts.changes > 0) run = runs.setInterrupts(run, record, interrupts)
      if (fold !== undefined) run = keepFold(runs, run, fold)
      return { kind: 'ok', record: runs.change(run, stored, { ...change, lastSeq: run.meta.last }, expected.op).record }
    })
  }

  async delete (key: RunKey): Promise<void> {
    const { runs, eraser, queue } = this.#parts
    const hash = runHashOf(key)
    await queue.write(() => { if (runs.exists(hash)) eraser.erase(hash) })
  }
}

function entryOf ({ key, clientId, session, createdAt }: RunRecord): IndexEntry {
  return { key, clientId, session, createdAt }
}
