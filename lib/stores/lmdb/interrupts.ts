import type { JsonValue } from '../../agent/json.ts'
import type { Answer, Claimant, ClaimResult, FinishResult, InterruptRecord, InterruptStore } from '../interrupts.ts'
import { frozenJson } from '../rules/frozen-json.ts'
import { type InterruptList, openOf } from '../rules/interrupt-list.ts'
import type { Owner, RunKey } from '../run-key.ts'
import type { RunRecord } from '../run-store.ts'
import { keyOf, TAG } from './keys.ts'
import type { LmdbParts } from './parts.ts'
import { runOf, sessionHash } from './run-table.ts'

/** {@link InterruptStore} in LMDB. The interrupts of a run are one entry; runs with open ones are listed by session. */
export class LmdbInterrupts implements InterruptStore {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
  }

  async list (key: RunKey): Promise<readonly InterruptRecord[]> {
    const { runs } = this.#parts
    const run = runs.find(key)
    return run === undefined ? [] : runs.interrupts(run).seen(runs.now)
  }

  async open (owner: Owner, protocol: string, session: string): Promise<readonly InterruptRecord[]> {
    const { runs, table } = this.#parts
    const seen: InterruptRecord[] = []
    for (const key of table.keys({ from: keyOf(TAG.waiting, sessionHash({ owner, protocol }, session)) })) {
      const run = runs.findHash(runOf(key))
      if (run !== undefined) seen.push(...runs.interrupts(run).seen(runs.now))
    }
    return openOf(seen)
  }

  async claim (key: RunKey, claimant: Claimant, answers: readonly Answer[]): Promise<ClaimResult> {
    const given = frozenJson(answers)
    const missing: ClaimResult = { kind: 'missing', ids: given.map(({ id }) => id) }
    return await this.#change(key, (list, record) => list.claim(record, claimant, given, this.#parts.runs.now), missing)
  }

  async finish (key: RunKey, claimant: Claimant, id: string, outcome: JsonValue): Promise<FinishResult> {
    const given = frozenJson(outcome)
    const missing: FinishResult = { kind: 'missing' }
    return await this.#change(key, (list) => list.finish(claimant, id, given, this.#parts.runs.now), missing)
  }

  async release (key: RunKey, claimant: Claimant, ids: readonly string[]): Promise<void> {
    await this.#change(key, (list) => { list.release(claimant, ids) }, undefined)
  }

  async abandon (key: RunKey, successor: Claimant): Promise<readonly InterruptRecord[]> {
    const none: readonly InterruptRecord[] = []
    return await this.#change(key, (list) => list.abandon(successor), none)
  }

  /** Lets `act` decide on a run's interrupts and keeps what it changed. */
  async #change<Result> (key: RunKey, act: (list: InterruptList, record: RunRecord) => Result, missing: Result): Promise<Result> {
    const { runs, queue } = this.#parts
    return await queue.write(() => {
      const run = runs.find(key)
      if (run === undefined) return missing
      const { record } = runs.record(run)
      const list = runs.interrupts(run)
      const result = act(list, record)
      if (list.changes > 0) runs.setInterrupts(run, record, list)
      return result
    })
  }
}
