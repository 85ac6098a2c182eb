import type { Presence } from '../presence.ts'
import type { RunKey } from '../run-key.ts'
import { jsonBytes, jsonOf } from './json-bytes.ts'
import { PART, partKey } from './keys.ts'
import type { LmdbParts } from './parts.ts'

/** Until when each node has a subscriber. */
type Until = ReadonlyMap<string, number>

/** {@link Presence} in LMDB. */
export class LmdbPresence implements Presence {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
  }

  async enter (key: RunKey, node: string, ms: number): Promise<void> {
    await this.#change(key, (nodes) => new Map([...nodes, [node, this.#parts.runs.now + ms]]))
  }

  async leave (key: RunKey, node: string): Promise<void> {
    await this.#change(key, (nodes) => new Map([...nodes].filter(([other]) => other !== node)))
  }

  async nodes (key: RunKey): Promise<readonly string[]> {
    const run = this.#parts.runs.find(key)
    return run === undefined ? [] : [...this.#present(run.hash).keys()].sort()
  }

  async #change (key: RunKey, change: (nodes: Until) => Until): Promise<void> {
    const { runs, table, queue } = this.#parts
    await queue.write(() => {
      const run = runs.find(key)
      if (run !== undefined) table.put(partKey(run.hash, PART.presence), jsonBytes([...change(this.#present(run.hash))]))
    })
  }

  #present (run: Buffer): Until {
    const { runs: { now }, table } = this.#parts
    const bytes = table.get(partKey(run, PART.presence))
    return new Map(bytes === undefined ? [] : jsonOf<[string, number][]>(bytes).filter(([, until]) => until > now))
  }
}
