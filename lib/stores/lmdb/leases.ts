import type {
  AcquireResult, ExpiredQuery, LeaseRefusal, LeaseRequest, Leases, Ownership, RenewResult, TakeoverResult
} from '../leases.ts'
import { decideTake, isRenewable, newLease, releasedLease } from '../rules/lease.ts'
import { raised } from '../rules/record.ts'
import type { RunKey } from '../run-key.ts'
import { jsonOf } from './json-bytes.ts'
import { HASH_BYTES, hashOf, keyOf, orderedAt, TAG } from './keys.ts'
import type { LmdbParts } from './parts.ts'
import { runOf } from './run-table.ts'

/** Where a lease's index key has its expiry. */
const EXPIRY_AT = 1 + HASH_BYTES

/** {@link Leases} in LMDB. Raising the fence, which appends compare with, is what seals the log. */
export class LmdbLeases implements Leases {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
  }

  async acquire (key: RunKey, request: LeaseRequest): Promise<AcquireResult> {
    const result = await this.#parts.queue.write(() => this.#take(key, request, false))
    return 'kind' in result ? result : { kind: 'acquired', ...result }
  }

  async takeover (key: RunKey, request: LeaseRequest): Promise<TakeoverResult> {
    const result = await this.#parts.queue.write(() => this.#take(key, request, true))
    return 'kind' in result ? result : { kind: 'taken', ...result }
  }

  async renew (key: RunKey, fence: number, ms: number): Promise<RenewResult> {
    const { runs, queue } = this.#parts
    return await queue.write((): RenewResult => {
      const run = runs.find(key)
      if (run === undefined) return { kind: 'lost', fence: 0 }
      const lease = runs.lease(run)
      if (!isRenewable(run.meta, lease, fence)) return { kind: 'lost', fence: run.meta.fence }
      runs.setLease(run, key, { ...lease, expiresAt: runs.now + ms })
      return { kind: 'ok' }
    })
  }

  async release (key: RunKey, fence: number): Promise<void> {
    const { runs, queue } = this.#parts
    await queue.write(() => {
      const run = runs.find(key)
      const lease = run && runs.lease(run)
      if (run === undefined || lease === undefined || run.meta.fence !== fence) return
      runs.setLease(run, key, releasedLease(run.meta, lease, runs.now))
    })
  }

  async expired ({ protocols, limit }: ExpiredQuery): Promise<readonly RunKey[]> {
    const { table, runs } = this.#parts
    const due: { readonly key: RunKey, readonly expiresAt: number }[] = []
    for (const protocol of new Set(protocols)) {
      const prefix = keyOf(TAG.lease, hashOf(protocol))
      const to = keyOf(TAG.lease, hashOf(protocol), runs.now, Buffer.alloc(HASH_BYTES + 1, 0xff))
      let count = 0
      for (const { key, value } of table.entries({ from: prefix, to })) {
        if (runs.findHash(runOf(key)) === undefined) continue
        due.push({ key: jsonOf<RunKey>(value), expiresAt: orderedAt(key, EXPIRY_AT) })
        if (++count === limit) break
      }
    }
    return due.sort((a, b) => a.expiresAt - b.expiresAt).slice(0, limit).map(({ key }) => key)
  }

  #take (key: RunKey, request: LeaseRequest, fromExpired: boolean): Ownership | LeaseRefusal {
    const { runs } = this.#parts
    const found = runs.find(key)
    if (found === undefined) return { kind: 'missing' }
    const stored = runs.record(found)
    const decision = decideTake(stored.record, runs.lease(found), request, fromExpired, runs.now)
    if (decision.kind === 'refused') return decision.refusal
    const { last } = found.meta
    const isRaised = decision.kind === 'raise'
    const { run, record } = isRaised
      ? runs.change(found, stored, raised(stored.record, request.node, last), undefined)
      : { run: found, record: stored.record }
    runs.setLease(run, key, newLease(request, runs.now))
    return { fence: record.fence, last, record }
  }
}
