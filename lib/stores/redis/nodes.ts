import type { Nodes, OrphansQuery } from '../nodes.ts'
import type { RunKey } from '../run-key.ts'
import { isEnded, type RunState } from '../run-store.ts'
import { memberOf, pairsOf, parseMember, type Verdict } from './index-set.ts'
import type { RedisParts } from './parts.ts'
import { BIND, BIND_RUN, FORGET, UNBIND_RUN } from './scripts/nodes.ts'

/** Dead nodes whose runs one call looks for. */
const MAX_NODES = 100

/** {@link Nodes} in Redis. A heartbeat is a key that runs out; bindings stand in the runs, and in a sorted set a protocol and node. */
export class RedisNodes implements Nodes {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async beat (node: string, ms: number): Promise<void> {
    const { connection, keys } = this.#parts
    await connection.command('nodes.beat', 'SET', keys.heartbeat(node), 1, 'PX', ms)
  }

  async bind (node: string, key: RunKey): Promise<void> {
    const { connection, keys, indexSet } = this.#parts
    const runs = keys.boundRuns(key.protocol, node)
    const member = memberOf(key)
    const oldest = await connection.runTimed('nodes.bind', BIND, [keys.boundNodes(key.protocol), runs], JSON.stringify(node), member) as readonly string[] // as ZRANGE answers
    const isThere = await connection.run('nodes.bind', BIND_RUN, [keys.run(key)[0]], JSON.stringify(node))
    if (Number(isThere) === 0) await connection.command('nodes.bind', 'ZREM', runs, member)
    for (const { member: other, score } of pairsOf(oldest)) {
      if (other === member) continue
      const verdict = await this.#look('nodes.bind', node, other)
      // What is bound for long makes room for others to be looked at.
      if (verdict.kind === 'over') await indexSet.correct('nodes.bind', runs, [{ member: other, score }])
      else await indexSet.touch('nodes.bind', runs, 0, other)
    }
  }

  async unbind (node: string, key: RunKey): Promise<void> {
    const { connection, keys } = this.#parts
    await connection.run('nodes.unbind', UNBIND_RUN, [keys.run(key)[0]], JSON.stringify(node))
    await connection.command('nodes.unbind', 'ZREM', keys.boundRuns(key.protocol, node), memberOf(key))
  }

  async orphans ({ protocols, limit }: OrphansQuery): Promise<readonly RunKey[]> {
    const orphans: RunKey[] = []
    for (const protocol of protocols) {
      if (orphans.length >= limit) break
      for (const node of await this.#deadNodes(protocol)) {
        if (orphans.length >= limit) break
        orphans.push(...await this.#orphansOf(protocol, node, limit - orphans.length))
      }
    }
    return orphans
  }

  async #deadNodes (protocol: string): Promise<readonly string[]> {
    const { connection, keys, indexSet } = this.#parts
    return await indexSet.due('nodes.orphans', keys.boundNodes(protocol), MAX_NODES, async (member, now) => {
      const node = JSON.parse(member) as string // as `bind` wrote it
      const left = Number(await connection.command('nodes.orphans', 'PTTL', keys.heartbeat(node)))
      return left > 0 ? { kind: 'due', at: now + left } : { kind: 'found', found: node }
    })
  }

  async #orphansOf (protocol: string, node: string, limit: number): Promise<readonly RunKey[]> {
    const { connection, keys, indexSet } = this.#parts
    const runs = keys.boundRuns(protocol, node)
    const found = await indexSet.due('nodes.orphans', runs, limit, (member) => this.#look('nodes.orphans', node, member))
    if (found.length === 0) await connection.run('nodes.orphans', FORGET, [keys.boundNodes(protocol), runs], JSON.stringify(node))
    return found.flatMap((key) => key ?? [])
  }

  /** Found: the run, if it waits; nothing, if it is bound and may come to wait. */
  async #look (operation: 'nodes.bind' | 'nodes.orphans', node: string, member: string): Promise<Verdict<RunKey | undefined>> {
    const { connection, keys } = this.#parts
    const { key } = parseMember(member)
    const [state, bound] = await connection.command(operation, 'HMGET', keys.run(key)[0], 's', 'b') as (string | null)[] // as HMGET answers
    if (state == null || bound !== JSON.stringify(node) || isEnded(state as RunState)) return { kind: 'over' }
    return { kind: 'found', found: state === 'waiting' ? key : undefined }
  }
}
