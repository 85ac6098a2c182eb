import { StoreFullError } from '../errors.ts'
import type { NewInterrupt } from '../interrupts.ts'
import type { LeaseRequest } from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import {
  type Barrier, type CommitResult, type CreateResult, type Expected, type ExpectedAtBarrier, type NewRun, type RunPatch,
  type RunRecord, type RunStore, type UpdateResult
} from '../run-store.ts'
import { newLease } from '../rules/lease.ts'
import { placeOf } from '../rules/log.ts'
import { frozenPatch, isRetry, isStale, newRecord } from '../rules/record.ts'
import { appendTo, keepFold } from './event-log.ts'
import type { MemoryInterrupts } from './interrupts.ts'
import { edgeOf, type MemoryState, type MemoryRun } from './state.ts'

/** {@link RunStore} in memory. Each method runs without an `await`, which makes it atomic. */
export class MemoryRuns implements RunStore {
  readonly #state: MemoryState
  readonly #interrupts: MemoryInterrupts

  constructor (state: MemoryState, interrupts: MemoryInterrupts) {
    this.#state = state
    this.#interrupts = interrupts
  }

  async create (init: NewRun, lease: LeaseRequest): Promise<CreateResult> {
    const state = this.#state
    const there = state.find(init.key)
    if (there !== undefined) return { kind: there.createOp === lease.op ? 'created' : 'exists', record: there.record }
    const { maxRuns } = state.options
    if (state.size >= maxRuns && !state.dropOldestEnded()) throw new StoreFullError('maxRuns', maxRuns)
    const record = newRecord(init, lease, state.now)
    const run = state.add(record, lease.op)
    state.leased.set(run, newLease(lease, state.now))
    return { kind: 'created', record }
  }

  async get (key: RunKey): Promise<RunRecord | undefined> {
    return this.#state.find(key)?.record
  }

  async update (key: RunKey, expected: Expected, patch: RunPatch): Promise<UpdateResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'missing' }
    if (isRetry(run, expected)) return { kind: 'ok', record: run.record }
    if (isStale(run.record, expected, patch)) return { kind: 'stale', record: run.record }
    return { kind: 'ok', record: this.#state.write(run, frozenPatch(patch), expected.op) }
  }

  async commit (key: RunKey, expected: ExpectedAtBarrier, barrier: Barrier): Promise<CommitResult> {
    const state = this.#state
    const run = state.find(key)
    if (run === undefined) return { kind: 'missing' }
    if (isRetry(run, expected)) return { kind: 'ok', record: run.record }
    const interrupts = barrier.interrupts ?? []
    if (isStale(run.record, expected, barrier.patch) || run.interrupts.isInUse(interrupts)) return { kind: 'stale', record: run.record }
    const place = placeOf(edgeOf(run), barrier.firstSeq, barrier.events.length)
    if (place === 'elsewhere') return { kind: 'misplaced', last: run.log.last, record: run.record }
    this.#checkRoom(run, interrupts)

    // From here on nothing fails.
    if (place === 'next') appendTo(state, run, barrier.events, barrier.limits)
    if (barrier.closeInterrupts === true) this.#interrupts.close(run)
    this.#interrupts.add(run, interrupts)
    if (barrier.fold !== undefined) keepFold(run, barrier.fold)
    return { kind: 'ok', record: state.write(run, { ...frozenPatch(barrier.patch), lastSeq: run.log.last }, expected.op) }
  }

  async delete (key: RunKey): Promise<void> {
    const run = this.#state.find(key)
    if (run !== undefined) this.#state.drop(run)
  }

  #checkRoom (run: MemoryRun, interrupts: readonly NewInterrupt[]): void {
    const { maxInterrupts } = this.#state.options
    const added = run.interrupts.countNew(interrupts)
    if (this.#state.interruptCount + added > maxInterrupts) throw new StoreFullError('maxInterrupts', maxInterrupts)
  }
}
