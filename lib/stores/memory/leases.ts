import type {
  AcquireResult, ExpiredQuery, LeaseRefusal, LeaseRequest, Leases, Ownership, RenewResult, TakeoverResult
} from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import { isEnded } from '../run-store.ts'
import type { MemoryRun, MemoryState } from './state.ts'

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
    if (record.fence !== fence || lease === undefined || lease.released) return { kind: 'lost', fence: record.fence }
    this.#state.leased.set(run, { ...lease, expiresAt: this.#state.now + ms })
    return { kind: 'ok' }
  }

  async release (key: RunKey, fence: number): Promise<void> {
    const run = this.#state.find(key)
    const lease = run && this.#state.leased.get(run)
    if (run === undefined || lease === undefined || run.record.fence !== fence) return
    if (run.record.state === 'waiting') this.#state.leased.delete(run)
    else this.#state.leased.set(run, { ...lease, expiresAt: this.#state.now, released: true })
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

  #take (key: RunKey, { node, op, ms }: LeaseRequest, fromExpired: boolean): Ownership | LeaseRefusal {
    const state = this.#state
    const run = state.find(key)
    if (run === undefined) return { kind: 'missing' }
    const { record } = run
    const lease = state.leased.get(run)
    if (isEnded(record.state)) return { kind: 'ended', record }
    if (lease !== undefined && lease.op !== op) {
      const expiresInMs = lease.expiresAt - state.now
      if (!fromExpired || expiresInMs > 0) return { kind: 'held', node: lease.node, fence: record.fence, expiresInMs }
    }
    if (lease?.op !== op) this.#raise(run, node)
    state.leased.set(run, { node, op, expiresAt: state.now + ms, released: false })
    return { fence: run.record.fence, last: run.log.last, record: run.record }
  }

  #raise (run: MemoryRun, node: string): void {
    const { record, log: { last } } = run
    const fence = record.fence + 1
    // An ownership that appended nothing needs no pair: no sequence of it is to be found.
    const pairs = record.firstSeqByFence.filter(([, firstSeq]) => firstSeq <= last)
    const firstSeqByFence = Object.freeze([...pairs, Object.freeze([fence, last + 1] as const)])
    this.#state.write(run, { fence, node, lastSeq: last, firstSeqByFence }, undefined)
  }
}
