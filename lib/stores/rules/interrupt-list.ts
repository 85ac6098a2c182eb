import type { JsonValue } from '../../agent/json.ts'
import type { Answer, Claimant, ClaimResult, FinishResult, InterruptRecord, NewInterrupt } from '../interrupts.ts'
import type { RunRecord } from '../run-store.ts'
import { frozenJson } from './frozen-json.ts'

/** The interrupts of one run, in the order they were opened. Every method decides and changes in one step; `changes` counts what it wrote. */
export class InterruptList {
  /** Raised with each record written. */
  changes = 0
  readonly #records: Map<string, InterruptRecord>

  constructor (records: Iterable<InterruptRecord> = []) {
    this.#records = new Map(Array.from(records, (record) => [record.id, record]))
  }

  get size (): number { return this.#records.size }
  /** As they are kept, an expired one still `open`. */
  get kept (): readonly InterruptRecord[] { return [...this.#records.values()] }
  /** Whether anybody may still answer one. */
  get isOpen (): boolean { return this.kept.some(({ state }) => state === 'open') }

  /** How many of these ids the list does not have. */
  countNew (interrupts: readonly NewInterrupt[]): number {
    return new Set(interrupts.map(({ id }) => id).filter((id) => !this.#records.has(id))).size
  }

  /** Whether somebody may be acting, or have acted, on one of these: they can not be replaced. */
  isInUse (interrupts: readonly NewInterrupt[]): boolean {
    return interrupts.some(({ id }) => {
      const state = this.#records.get(id)?.state
      return state === 'claimed' || state === 'unknown'
    })
  }

  /** All of them as of now. */
  seen (now: number): readonly InterruptRecord[] {
    return this.kept.map((record) => see(record, now))
  }

  /** Opens interrupts, as a part of a barrier. */
  open ({ key, session }: RunRecord, interrupts: readonly NewInterrupt[]): void {
    for (const init of interrupts) {
      // A replaced interrupt is a new one: it goes to the end of the list.
      this.#records.delete(init.id)
      this.#put({ ...init, run: key, session, state: 'open' })
    }
  }

  /** Closes what nobody has answered, as a part of a barrier. */
  close (): void {
    for (const record of this.#records.values()) if (record.state === 'open') this.#put({ ...record, state: 'closed' })
  }

  claim (run: RunRecord, claimant: Claimant, answers: readonly Answer[], now: number): ClaimResult {
    const missing = answers.map(({ id }) => id).filter((id) => !this.#records.has(id))
    if (missing.length > 0) return { kind: 'missing', ids: missing }
    if (claimant.run === run.key.id && claimant.fence !== run.fence) return { kind: 'fenced', fence: run.fence }
    const records = answers.map(({ id }) => see(this.#records.get(id) as InterruptRecord, now)) // none is missing
    if (records.every((record) => isClaimOf(record, claimant))) return { kind: 'claimed', records }
    if (records.some(({ state }) => state !== 'open' && state !== 'expired')) return { kind: 'taken', records }
    if (records.some(({ state }, index) => state === 'expired' && answers[index]?.cancels !== true)) return { kind: 'expired', records }
    const claim = { run: claimant.run, fence: claimant.fence, at: now }
    return {
      kind: 'claimed',
      records: records.map((record, index) => this.#put({ ...record, state: 'claimed', decision: answers[index]?.decision ?? null, claim }))
    }
  }

  finish (claimant: Claimant, id: string, outcome: JsonValue, now: number): FinishResult {
    const record = this.#records.get(id)
    if (record === undefined) return { kind: 'missing' }
    if (!isClaimOf(record, claimant)) return { kind: 'lost', record: see(record, now) }
    if (record.state === 'done') return { kind: 'ok', record }
    return { kind: 'ok', record: this.#put({ ...record, state: 'done', outcome }) }
  }

  release (claimant: Claimant, ids: readonly string[]): void {
    for (const id of ids) {
      const record = this.#records.get(id)
      if (record?.state !== 'claimed' || !isClaimOf(record, claimant)) continue
      const { decision, claim, ...rest } = record
      this.#put({ ...rest, state: 'open' })
    }
  }

  abandon (successor: Claimant): readonly InterruptRecord[] {
    for (const record of this.#records.values()) {
      const { state, claim } = record
      if (state === 'claimed' && claim?.run === successor.run && claim.fence < successor.fence) this.#put({ ...record, state: 'unknown' })
    }
    return this.kept.filter(({ state, claim }) => state === 'unknown' && claim?.run === successor.run)
  }

  #put (record: InterruptRecord): InterruptRecord {
    const frozen = frozenJson(record)
    this.#records.set(frozen.id, frozen)
    this.changes++
    return frozen
  }
}

/** What a session waits for, of the interrupts of its runs: oldest first. */
export function openOf (seen: readonly InterruptRecord[]): readonly InterruptRecord[] {
  return seen.filter(({ state }) => state === 'open' || state === 'expired').sort((a, b) => a.createdAt - b.createdAt)
}

/** The record as of now: an open one whose time has run out has expired. */
function see (record: InterruptRecord, now: number): InterruptRecord {
  if (record.state !== 'open' || record.expiresAt === undefined || record.expiresAt > now) return record
  return Object.freeze({ ...record, state: 'expired' as const })
}

function isClaimOf ({ state, claim }: InterruptRecord, claimant: Claimant): boolean {
  return (state === 'claimed' || state === 'done') && claim?.run === claimant.run && claim.fence === claimant.fence
}
