import type { Presence } from '../presence.ts'
import type { RunKey } from '../run-key.ts'
import type { MemoryState } from './state.ts'

/** {@link Presence} in memory. */
export class MemoryPresence implements Presence {
  readonly #state: MemoryState

  constructor (state: MemoryState) {
    this.#state = state
  }

  async enter (key: RunKey, node: string, ms: number): Promise<void> {
    this.#state.find(key)?.presence.set(node, this.#state.now + ms)
  }

  async leave (key: RunKey, node: string): Promise<void> {
    this.#state.find(key)?.presence.delete(node)
  }

  async nodes (key: RunKey): Promise<readonly string[]> {
    const run = this.#state.find(key)
    if (run === undefined) return []
    const { now } = this.#state
    for (const [node, until] of run.presence) if (until <= now) run.presence.delete(node)
    return [...run.presence.keys()].sort()
  }
}
