import type { Nodes, OrphansQuery } from '../nodes.ts'
import type { RunKey } from '../run-key.ts'
import type { MemoryRun, MemoryState } from './state.ts'

/** {@link Nodes} in memory: of use where several engines share one store, as in tests. */
export class MemoryNodes implements Nodes {
  readonly #state: MemoryState
  readonly #aliveUntil = new Map<string, number>()
  readonly #bound = new Map<MemoryRun, string>()

  constructor (state: MemoryState) {
    this.#state = state
    state.onDrop.push((run) => this.#bound.delete(run))
    state.register({
      sweep: (now) => { for (const node of this.#aliveUntil.keys()) if (!this.#isAlive(node, now)) this.#aliveUntil.delete(node) },
      isEmpty: () => this.#aliveUntil.size === 0
    })
  }

  async beat (node: string, ms: number): Promise<void> {
    this.#aliveUntil.set(node, this.#state.now + ms)
    this.#state.keepSwept()
  }

  async bind (node: string, key: RunKey): Promise<void> {
    const run = this.#state.find(key)
    if (run !== undefined) this.#bound.set(run, node)
  }

  async unbind (node: string, key: RunKey): Promise<void> {
    const run = this.#state.find(key)
    if (run !== undefined && this.#bound.get(run) === node) this.#bound.delete(run)
  }

  async orphans ({ protocols, limit }: OrphansQuery): Promise<readonly RunKey[]> {
    const { now } = this.#state
    const orphans: RunKey[] = []
    for (const [run, node] of this.#bound) {
      const { key, state } = run.record
      if (orphans.length === limit) break
      const isLost = state === 'waiting' && protocols.includes(key.protocol) && !this.#isAlive(node, now)
      if (isLost && this.#state.find(key) === run) orphans.push(key)
    }
    return orphans
  }

  #isAlive (node: string, now: number): boolean {
    return (this.#aliveUntil.get(node) ?? 0) > now
  }
}
