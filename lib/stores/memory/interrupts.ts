import type { JsonValue } from '../../agent/json.ts'
import type {
  Answer, Claimant, ClaimResult, FinishResult, InterruptRecord, InterruptStore, NewInterrupt
} from '../interrupts.ts'
import { type Owner, ownerText, type RunKey } from '../run-key.ts'
import { frozenJson } from './frozen-json.ts'
import type { MemoryRun, MemoryState } from './state.ts'

/** {@link InterruptStore} in memory. */
export class MemoryInterrupts implements InterruptStore {
  readonly #state: MemoryState
  /** Runs that may have open interrupts, by session; verified on read. */
  readonly #waiting = new Map<string, Set<MemoryRun>>()

  constructor (state: MemoryState) {
    this.#state = state
    state.onDrop.push((run) => this.#forget(run))
  }

  async list (key: RunKey): Promise<readonly InterruptRecord[]> {
    const run = this.#state.find(key)
    return run === undefined ? [] : this.#seen(run)
  }

  async open (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]> {
    const runs = this.#waiting.get(sessionText(owner, protocol, session)) ?? []
    return [...runs]
      .flatMap((run) => this.#state.find(run.record.key) === run ? this.#seen(run) : [])
      .filter(({ state }) => state === 'open' || state === 'expired')
      .sort((a, b) => a.createdAt - b.createdAt)
  }

  async claim (key: RunKey, claimant: Claimant, answers: readonly Answer[]): Promise<ClaimResult> {
    const run = this.#state.find(key)
    const missing = answers.map(({ id }) => id).filter((id) => run?.interrupts.has(id) !== true)
    if (run === undefined || missing.length > 0) return { kind: 'missing', ids: missing }
    if (claimant.run === key.id && claimant.fence !== run.record.fence) return { kind: 'fenced', fence: run.record.fence }

    const byId = new Map(this.#seen(run).map((record) => [record.id, record]))
    const records = answers.map(({ id }) => byId.get(id) as InterruptRecord) // none is missing
    if (records.every((record) => isClaimOf(record, claimant))) return { kind: 'claimed', records }
    if (records.some(({ state }) => state !== 'open' && state !== 'expired')) return { kind: 'taken', records }
    if (records.some(({ state }, index) => state === 'expired' && answers[index]?.cancels !== true)) return { kind: 'expired', records }
    const claim = { run: claimant.run, fence: claimant.fence, at: this.#state.now }
    return {
      kind: 'claimed',
      records: records.map((record, index) => this.#put(run, { ...record, state: 'claimed', decision: answers[index]?.decision ?? null, claim }))
    }
  }

  async finish (key: RunKey, claimant: Claimant, id: string, outcome: JsonValue): Promise<FinishResult> {
    const run = this.#state.find(key)
    const record = run?.interrupts.get(id)
    if (run === undefined || record === undefined) return { kind: 'missing' }
    if (!isClaimOf(record, claimant)) return { kind: 'lost', record: this.#see(record) }
    if (record.state === 'done') return { kind: 'ok', record }
    return { kind: 'ok', record: this.#put(run, { ...record, state: 'done', outcome }) }
  }

  async release (key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void> {
    const run = this.#state.find(key)
    for (const id of ids) {
      const record = run?.interrupts.get(id)
      if (run === undefined || record?.state !== 'claimed' || !isClaimOf(record, claimant)) continue
      const { decision, claim, ...rest } = record
      this.#put(run, { ...rest, state: 'open' })
    }
  }

  async abandon (key: RunKey, successor: Claimant): Promise<readonly InterruptRecord[]> {
    const run = this.#state.find(key)
    if (run === undefined) return []
    for (const record of run.interrupts.values()) {
      const { state, claim } = record
      if (state === 'claimed' && claim?.run === successor.run && claim.fence < successor.fence) this.#put(run, { ...record, state: 'unknown' })
    }
    return [...run.interrupts.values()].filter(({ state, claim }) => state === 'unknown' && claim?.run === successor.run)
  }

  /** Opens interrupts of a run, as a part of its barrier. */
  add (run: MemoryRun, interrupts: readonly NewInterrupt[]): void {
    const { key, session } = run.record
    for (const init of interrupts) {
      // A replaced interrupt is a new one: it goes to the end of the list.
      if (!run.interrupts.delete(init.id)) this.#state.interruptCount++
      this.#put(run, { ...init, run: key, session, state: 'open' })
    }
    if (interrupts.length === 0) return
    const text = sessionText(key.owner, key.protocol, session)
    const waiting = this.#waiting.get(text)
    if (waiting === undefined) this.#waiting.set(text, new Set([run]))
    else waiting.add(run)
  }

  /** Closes what nobody has answered, as a part of a barrier. */
  close (run: MemoryRun): void {
    for (const record of run.interrupts.values()) if (record.state === 'open') this.#put(run, { ...record, state: 'closed' })
    this.#forget(run)
  }

  #forget (run: MemoryRun): void {
    const { key, session } = run.record
    const text = sessionText(key.owner, key.protocol, session)
    const waiting = this.#waiting.get(text)
    waiting?.delete(run)
    if (waiting?.size === 0) this.#waiting.delete(text)
  }

  #put (run: MemoryRun, record: InterruptRecord): InterruptRecord {
    const frozen = frozenJson(record)
    run.interrupts.set(frozen.id, frozen)
    return frozen
  }

  #seen (run: MemoryRun): readonly InterruptRecord[] {
    return [...run.interrupts.values()].map((record) => this.#see(record))
  }

  /** The record as of now: an open one whose time has run out has expired. */
  #see (record: InterruptRecord): InterruptRecord {
    if (record.state !== 'open' || record.expiresAt === undefined || record.expiresAt > this.#state.now) return record
    return Object.freeze({ ...record, state: 'expired' as const })
  }
}

function isClaimOf ({ state, claim }: InterruptRecord, claimant: Claimant): boolean {
  return (state === 'claimed' || state === 'done') && claim?.run === claimant.run && claim.fence === claimant.fence
}

function sessionText (owner: Owner, protocol: string, session: string): string {
  return JSON.stringify([ownerText(owner), protocol, session])
}
