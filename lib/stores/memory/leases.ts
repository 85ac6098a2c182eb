import type {
  AcquireResult, ExpiredQuery, LeaseRefusal, LeaseRequest, Leases, Ownership, RenewResult, TakeoverResult
} from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import { decideTake, isRenewable, newLease, releasedLease } from '../rules/lease.ts'
import { raised } from '../rules/record.ts'
import type { MemoryState } from './state.ts'

/** {@link Leases} in memory. Raising the record's fence is what seals the log: appends compare with it. */
export class MemoryLeases implements Leases {
  readonly #state: MemoryState

  constructor (state: MemoryState) {
    this.#state = state
  }

  async acquire (key: RunKey, request: LeaseRequest): Promise<AcquireResult> {
    const result = this.#take(key, request, false)
    return 'kind' in result ? result : { kind: 'acquired', ...result }
  }

  async takeover (key: RunKey, request: LeaseRequest): Promise<TakeoverResult> {
    const result = this.#take(key, request, true)
    return 'kind' in result ? result : { kind: 'taken', ...result }
  }

  async renew (key: RunKey, fence: number, ms: number): Promise<RenewResult> {
    const run = this.#state.find(key)
    if (run === undefined) return { kind: 'lost', fence: 0 }
    const { record } = run
    const lease = this.#state.leased.get(run)
    if (!isRenewable(record, lease, fence)) return { kind: 'lost', fence: record.fence }
    this.#state.leased.set(run, { ...lease, expiresAt: this.#state.now + ms })
    return { kind: 'ok' }
  }

  async release (key: RunKey, fence: number): Promise<void> {
    const run = this.#state.find(key)
    const lease = run && this.#state.leased.get(run)
    if (run === undefined || lease === undefined || run.record.fence !== fence) return
    const rest = releasedLease(run.record, lease, this.#state.now)
    if (rest === undefined) this.#state.leased.delete(run)
    else this.#state.leased.set(run, rest)
  }

  async expired ({ protocols, limit }: ExpiredQuery): Promise<readonly RunKey[]> {
    const { now } = this.#state
    const due: { readonly key: RunKey, readonly expiresAt: number }[] = []
    for (const [run, { expiresAt }] of this.#state.leased) {
      const { key } = run.record
      if (expiresAt <= now && protocols.includes(key.protocol) && this.#state.find(key) === run) due.push({ key, expiresAt })
    }
    return due.sort((a, b) => a.expiresAt - b.expiresAt).slice(0, limit).map(({ key }) => key)
  }

  #take (key: RunKey, request: LeaseRequest, fromExpired: boolean): Ownership | LeaseRefusal {
    const state = this.#state
    const run = state.find(key)
    if (run === undefined) return { kind: 'missing' }
    const decision = decideTake(run.record, state.leased.get(run), request, fromExpired, state.now)
    if (decision.kind === 'refused') return decision.refusal
    const { log: { last } } = run
    if (decision.kind === 'raise') state.write(run, raised(run.record, request.node, last), undefined)
    state.leased.set(run, newLease(request, state.now))
    return { fence: run.record.fence, last, record: run.record }
  }
}
