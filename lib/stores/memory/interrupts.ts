import type { JsonValue } from '../../agent/json.ts'
import type {
  Answer, Claimant, ClaimResult, FinishResult, InterruptRecord, InterruptStore, NewInterrupt
} from '../interrupts.ts'
import { openOf } from '../rules/interrupt-list.ts'
import { type Owner, ownerText, type RunKey } from '../run-key.ts'
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
    return this.#state.find(key)?.interrupts.seen(this.#state.now) ?? []
  }

  async open (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]> {
    const runs = this.#waiting.get(sessionText(owner, protocol, session)) ?? []
    return openOf([...runs].flatMap((run) => this.#state.find(run.record.key) === run ? run.interrupts.seen(this.#state.now) : []))
  }

  async claim (key: RunKey, claimant: Claimant, answers: readonly Answer[]): Promise<ClaimResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'missing', ids: answers.map(({ id }) => id) }
    return run.interrupts.claim(run.record, claimant, answers, this.#state.now)
  }

  async finish (key: RunKey, claimant: Claimant, id: string, outcome: JsonValue): Promise<FinishResult> {
    return this.#state.find(key)?.interrupts.finish(claimant, id, outcome, this.#state.now) ?? { kind: 'missing' }
  }

  async release (key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void> {
    this.#state.find(key)?.interrupts.release(claimant, ids)
  }

  async abandon (key: RunKey, successor: Claimant): Promise<readonly InterruptRecord[]> {
    return this.#state.find(key)?.interrupts.abandon(successor) ?? []
  }

  /** Opens interrupts of a run, as a part of its barrier. */
  add (run: MemoryRun, interrupts: readonly NewInterrupt[]): void {
    if (interrupts.length === 0) return
    const { key, session } = run.record
    this.#state.interruptCount += run.interrupts.countNew(interrupts)
    run.interrupts.open(run.record, interrupts)
    const text = sessionText(key.owner, key.protocol, session)
    const waiting = this.#waiting.get(text)
    if (waiting === undefined) this.#waiting.set(text, new Set([run]))
    else waiting.add(run)
  }

  /** Closes what nobody has answered, as a part of a barrier. */
  close (run: MemoryRun): void {
    run.interrupts.close()
    this.#forget(run)
  }

  #forget (run: MemoryRun): void {
    const { key, session } = run.record
    const text = sessionText(key.owner, key.protocol, session)
    const waiting = this.#waiting.get(text)
    waiting?.delete(run)
    if (waiting?.size === 0) this.#waiting.delete(text)
  }
}

function sessionText (owner: Owner, protocol: string, session: string): string {
  return JSON.stringify([ownerText(owner), protocol, session])
}
