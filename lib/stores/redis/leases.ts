import type { AcquireResult, ExpiredQuery, LeaseRefusal, LeaseRequest, Leases, Ownership, RenewResult, TakeoverResult } from '../leases.ts'
import type { RunKey } from '../run-key.ts'
import { memberOf, parseMember, type Verdict } from './index-set.ts'
import { markOf } from './owned.ts'
import type { RedisParts } from './parts.ts'
import { parsed } from './runs.ts'
import { RELEASE, RENEW, TAKE } from './scripts/lease.ts'

interface ExpiredLease { readonly key: RunKey, readonly until: number }

/** {@link Leases} in Redis. Whose a run is stands in its hash; which leases run out when in a sorted set a protocol. */
export class RedisLeases implements Leases {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async acquire (key: RunKey, request: LeaseRequest): Promise<AcquireResult> {
    const result = await this.#take('leases.acquire', key, request)
    return 'kind' in result ? result : { kind: 'acquired', ...result }
  }

  async takeover (key: RunKey, request: LeaseRequest): Promise<TakeoverResult> {
    const result = await this.#take('leases.takeover', key, request)
    return 'kind' in result ? result : { kind: 'taken', ...result }
  }

  async renew (key: RunKey, fence: number, ms: number): Promise<RenewResult> {
    const { connection, keys, owned, indexSet, options } = this.#parts
    const runKeys = keys.run(key)
    const [kind, value] = await connection.runTimed(
      'leases.renew', RENEW, runKeys, options.idleTtlMs, owned.mark(runKeys[0], fence), fence, ms
    ) as ['ok', string] | ['lost', string | number] // as the script answers
    if (kind === 'lost') {
      owned.remove(runKeys[0])
      return { kind, fence: Number(value) }
    }
    // Nobody waits for it: a lease that seems to have run out is looked at before anybody is told so.
    indexSet.touch('leases.renew', keys.leases(key.protocol), ms, memberOf(key, JSON.parse(value) as string)).catch(() => {})
    return { kind }
  }

  async release (key: RunKey, fence: number): Promise<void> {
    const { connection, keys, owned, indexSet } = this.#parts
    const runKeys = keys.run(key)
    const answer = await connection.runTimed('leases.release', RELEASE, [runKeys[0]], owned.mark(runKeys[0], fence), fence) as [string, 'none' | 'due'] | null // as the script answers
    if (answer === null) return
    owned.remove(runKeys[0])
    const [op, then] = answer
    const set = keys.leases(key.protocol)
    const member = memberOf(key, JSON.parse(op) as string)
    if (then === 'due') await indexSet.touch('leases.release', set, 0, member)
    else await connection.command('leases.release', 'ZREM', set, member)
  }

  async expired ({ protocols, limit }: ExpiredQuery): Promise<readonly RunKey[]> {
    const { indexSet, keys } = this.#parts
    const found = await Promise.all(protocols.map((protocol) =>
      indexSet.due('leases.expired', keys.leases(protocol), limit, (member, now) => this.#look(member, now))))
    return found.flat().sort((a, b) => a.until - b.until).slice(0, limit).map(({ key }) => key)
  }

  async #look (member: string, now: number): Promise<Verdict<ExpiredLease>> {
    const { connection, keys } = this.#parts
    const { key, rest: [lease = ''] } = parseMember(member)
    const [op, end] = await connection.command('leases.expired', 'HMGET', keys.run(key)[0], 'lo', 'lu') as (string | null)[] // as HMGET answers
    if (op !== JSON.stringify(lease)) return { kind: 'over' }
    const until = Number(end)
    return until > now ? { kind: 'due', at: until } : { kind: 'found', found: { key, until } }
  }

  async #take (operation: 'leases.acquire' | 'leases.takeover', key: RunKey, { node, op, ms }: LeaseRequest): Promise<Ownership | LeaseRefusal> {
    const { connection, keys, owned, indexSet, options } = this.#parts
    const runKeys = keys.run(key)
    const set = keys.leases(key.protocol)
    // Before the lease: a run that no reaper would find must not be owned.
    const until = await indexSet.touch(operation, set, ms, memberOf(key, op))
    const answer = await connection.runTimed(
      operation, TAKE, runKeys, options.idleTtlMs, until, operation === 'leases.takeover' ? 1 : 0, JSON.stringify(node), JSON.stringify(op), markOf(op), ms
    ) as ['yes', (string | null)[], number | string, string | null] | ['held', string, number | string, number | string] | ['ended', (string | null)[]] | ['missing'] // as the script answers
    switch (answer[0]) {
      case 'missing': return { kind: 'missing' }
      case 'ended': return { kind: 'ended', record: parsed(answer[1]) }
      case 'held': return { kind: 'held', node: JSON.parse(answer[1]) as string, fence: Number(answer[2]), expiresInMs: Number(answer[3]) }
      case 'yes': {
        const record = parsed(answer[1])
        owned.add(runKeys[0], record.fence, op)
        const before = answer[3]
        if (before !== null && before !== JSON.stringify(op)) {
          // Nobody waits for it: an entry that stays is found to be over when it is due.
          connection.command(operation, 'ZREM', set, memberOf(key, JSON.parse(before) as string)).catch(() => {})
        }
        return { fence: record.fence, last: Number(answer[2]), record }
      }
    }
  }
}
