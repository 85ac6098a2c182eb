import { StoreFullError } from '../errors.ts'
import type { NewInterrupt } from '../interrupts.ts'
import type { LeaseRequest } from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import {
  type Barrier, type CommitResult, type CreateResult, type Expected, type ExpectedAtBarrier, isEnded, type NewRun, type RunPatch,
  type RunRecord, type RunStore, type UpdateResult
} from '../run-store.ts'
import { appendTo, keepFold, placeOf } from './event-log.ts'
import { frozenJson } from './frozen-json.ts'
import type { MemoryInterrupts } from './interrupts.ts'
import type { MemoryState, MemoryRun } from './state.ts'

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
    const record: RunRecord = frozenJson({
      ...init, version: 1, fence: 1, node: lease.node, lastSeq: 0, firstSeqByFence: [[1, 1]] as const, updatedAt: state.now
    })
    const run = state.add(record, lease.op)
    state.leased.set(run, { node: lease.node, op: lease.op, expiresAt: state.now + lease.ms, released: false })
    return { kind: 'created', record }
  }

  async get (key: RunKey): Promise<RunRecord | undefined> {
    return this.#state.find(key)?.record
  }

  async update (key: RunKey, expected: Expected, patch: RunPatch): Promise<UpdateResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'missing' }
    if (isRetry(run, expected)) return { kind: 'ok', record: run.record }
    if (isStale(run, expected, patch)) return { kind: 'stale', record: run.record }
    return { kind: 'ok', record: this.#state.write(run, frozenPatch(patch), expected.op) }
  }

  async commit (key: RunKey, expected: ExpectedAtBarrier, barrier: Barrier): Promise<CommitResult> {
    const state = this.#state
    const run = state.find(key)
    if (run === undefined) return { kind: 'missing' }
    if (isRetry(run, expected)) return { kind: 'ok', record: run.record }
    const interrupts = barrier.interrupts ?? []
    if (isStale(run, expected, barrier.patch) || interrupts.some(({ id }) => isInUse(run, id))) return { kind: 'stale', record: run.record }
    const place = placeOf(run, barrier.firstSeq, barrier.events.length)
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
    const added = new Set(interrupts.map(({ id }) => id).filter((id) => !run.interrupts.has(id))).size
    if (this.#state.interruptCount + added > maxInterrupts) throw new StoreFullError('maxInterrupts', maxInterrupts)
  }
}

function isRetry (run: MemoryRun, expected: Expected): boolean {
  return expected.op !== undefined && run.lastOp === expected.op && run.record.version === expected.version + 1
}

function isStale (run: MemoryRun, expected: Expected, patch: RunPatch): boolean {
  const { record } = run
  if (record.version !== expected.version) return true
  if (expected.fence !== undefined && record.fence !== expected.fence) return true
  return isEnded(record.state) && ('state' in patch || 'end' in patch || 'endedAt' in patch)
}

function isInUse (run: MemoryRun, id: string): boolean {
  const state = run.interrupts.get(id)?.state
  return state === 'claimed' || state === 'unknown'
}

/** The patch with its own copies of the values; a field to remove stays named. */
function frozenPatch (patch: RunPatch): Partial<RunRecord> {
  const copy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(patch)) copy[name] = value === undefined ? undefined : frozenJson(value)
  return copy as Partial<RunRecord> // the patch's fields with values of the same type
}
