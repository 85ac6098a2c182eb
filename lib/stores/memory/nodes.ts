import type { Nodes, OrphansQuery } from '../nodes.ts'
import { type RunKey, runKeyText } from '../run-key.ts'
import { isEnded } from '../run-store.ts'
import { frozenJson } from './frozen-json.ts'
import type { MemoryState } from './state.ts'

/** {@link Nodes} in memory: of use where several engines share one store, as in tests. */
export class MemoryNodes implements Nodes {
  readonly #state: MemoryState
  readonly #aliveUntil = new Map<string, number>()
  readonly #bound = new Map<string, Map<string, RunKey>>()

  constructor (state: MemoryState) {
    this.#state = state
    state.register({ sweep: (now) => this.#sweep(now), isEmpty: () => this.#aliveUntil.size === 0 && this.#bound.size === 0 })
  }

  async beat (node: string, ms: number): Promise<void> {
    this.#aliveUntil.set(node, this.#state.now + ms)
    this.#state.keepSwept()
  }

  async bind (node: string, key: RunKey): Promise<void> {
    let keys = this.#bound.get(node)
    if (keys === undefined) this.#bound.set(node, keys = new Map())
    keys.set(runKeyText(key), frozenJson(key))
    this.#state.keepSwept()
  }

  async unbind (node: string, key: RunKey): Promise<void> {
    const keys = this.#bound.get(node)
    keys?.delete(runKeyText(key))
    if (keys?.size === 0) this.#bound.delete(node)
  }

  async orphans ({ protocols, limit }: OrphansQuery): Promise<readonly RunKey[]> {
    const { now } = this.#state
    const orphans: RunKey[] = []
    for (const [node, keys] of this.#bound) {
      if (this.#isAlive(node, now)) continue
      for (const key of keys.values()) {
        if (orphans.length === limit) return orphans
        const record = protocols.includes(key.protocol) ? this.#state.find(key)?.record : undefined
        if (record?.state === 'waiting' && record.node === node) orphans.push(key)
      }
    }
    return orphans
  }

  #isAlive (node: string, now: number): boolean {
    return (this.#aliveUntil.get(node) ?? 0) > now
  }

  #sweep (now: number): void {
    for (const [node, keys] of this.#bound) {
      for (const [text, key] of keys) {
        const record = this.#state.find(key)?.record
        if (record === undefined || isEnded(record.state)) keys.delete(text)
      }
      if (keys.size === 0) this.#bound.delete(node)
    }
    for (const node of this.#aliveUntil.keys()) if (!this.#isAlive(node, now)) this.#aliveUntil.delete(node)
  }
}
