import type { Presence } from '../presence.ts'
import type { RunKey } from '../run-key.ts'
import type { RedisParts } from './parts.ts'
import { ENTER_RUN, PRESENT } from './scripts/nodes.ts'

/** {@link Presence} in Redis: a sorted set a run, by the time until which a node's entry counts. */
export class RedisPresence implements Presence {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async enter (key: RunKey, node: string, ms: number): Promise<void> {
    const { connection, keys } = this.#parts
    const [record, , , presence] = keys.run(key)
    await connection.runTimed('presence.enter', ENTER_RUN, [record, presence], JSON.stringify(node), ms)
  }

  async leave (key: RunKey, node: string): Promise<void> {
    const { connection, keys } = this.#parts
    await connection.command('presence.leave', 'ZREM', keys.run(key)[3], JSON.stringify(node))
  }

  async nodes (key: RunKey): Promise<readonly string[]> {
    const { connection, keys } = this.#parts
    const members = await connection.runTimed('presence.nodes', PRESENT, [keys.run(key)[3]]) as readonly string[] // as ZRANGE answers
    return members.map((member) => JSON.parse(member) as string).sort()
  }
}
