import type { Nodes, OrphansQuery } from '../nodes.ts'
import type { RunKey } from '../run-key.ts'
import { jsonOf } from './json-bytes.ts'
import { behind, HASH_BYTES, hashOf, keyOf, TAG } from './keys.ts'
import type { LmdbParts } from './parts.ts'
import { runOf } from './run-table.ts'

const NOTHING = Buffer.alloc(0)

/** {@link Nodes} in LMDB: a process that starts again is another node than the one before it, unless it is told its name. */
export class LmdbNodes implements Nodes {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
    parts.sweeper.register(TAG.node, (key) => { parts.values.remove(key) })
  }

  async beat (node: string, ms: number): Promise<void> {
    const { values, runs, queue } = this.#parts
    await queue.write(() => { values.put(keyOf(TAG.node, hashOf(node)), NOTHING, runs.now + ms) })
  }

  async bind (node: string, key: RunKey): Promise<void> {
    await this.#set(key, () => node)
  }

  async unbind (node: string, key: RunKey): Promise<void> {
    await this.#set(key, (before) => before === node ? undefined : before)
  }

  async orphans ({ protocols, limit }: OrphansQuery): Promise<readonly RunKey[]> {
    const { table, runs } = this.#parts
    const orphans: RunKey[] = []
    for (const node of this.#boundNodes()) {
      if (this.#isAlive(node)) continue
      for (const { key, value } of table.entries({ from: keyOf(TAG.bound, node) })) {
        if (orphans.length === limit) return orphans
        const run = jsonOf<RunKey>(value)
        if (protocols.includes(run.protocol) && runs.findHash(runOf(key))?.meta.state === 'waiting') orphans.push(run)
      }
    }
    return orphans
  }

  async #set (key: RunKey, nodeFor: (before: string | undefined) => string | undefined): Promise<void> {
    const { runs, queue } = this.#parts
    await queue.write(() => {
      const run = runs.find(key)
      if (run !== undefined) runs.setNode(run, key, nodeFor(runs.node(run)))
    })
  }

  /** The nodes that runs are bound to, each found by one step, however many runs it has. */
  * #boundNodes (): Generator<Buffer, void, undefined> {
    const to = behind(keyOf(TAG.bound))
    for (let from = keyOf(TAG.bound); ;) {
      const [key] = this.#parts.table.keys({ from, to, limit: 1 })
      if (key === undefined) return
      const node = key.subarray(1, 1 + HASH_BYTES)
      yield node
      from = behind(keyOf(TAG.bound, node))
    }
  }

  #isAlive (node: Buffer): boolean {
    const { values, runs } = this.#parts
    return values.get(keyOf(TAG.node, node), runs.now) !== undefined
  }
}
