import { HASH_BYTES, keyOf, PART, partKey, TAG } from './keys.ts'
import { runOf, type RunTable, sessionHash } from './run-table.ts'
import { decodeMeta, sizeOf } from './run-meta.ts'

/** Sorts behind every run of the same moment. */
const BEHIND_ALL = Buffer.alloc(HASH_BYTES + 1, 0xff)

/** Removes runs whole: every entry under their key and every index entry that leads there. Within a transaction. */
export class Eraser {
  readonly #runs: RunTable

  constructor (runs: RunTable) {
    this.#runs = runs
  }

  /** Removes a run, or what is left of it. How many entries that were. */
  erase (hash: Buffer): number {
    const { table, lists, usage } = this.#runs
    const entry = lists.entry(hash)
    if (entry !== undefined) lists.remove(hash, entry)
    const bytes = table.get(partKey(hash, PART.meta))
    if (bytes === undefined) return 1
    const run = { hash, meta: decodeMeta(bytes) }
    const { meta } = run
    const { record } = this.#runs.record(run)
    this.#runs.setLease(run, record.key, undefined)
    this.#runs.setNode(run, record.key, undefined)
    lists.setState(record, hash, meta.state, false)
    if (meta.goneAt !== Infinity) table.remove(keyOf(TAG.ended, meta.goneAt, hash))
    if (meta.interruptBytes > 0) table.remove(keyOf(TAG.waiting, sessionHash(record.key, record.session), hash))
    usage.add(-sizeOf(meta))
    const keys = [...table.keys({ from: keyOf(TAG.run, hash) })]
    for (const key of keys) table.remove(key)
    return keys.length
  }

  /** Removes the run that ended longest ago, or is to go next. False: none has ended. */
  eraseOldestEnded (): boolean {
    const [oldest] = this.#runs.table.keys({ from: keyOf(TAG.ended), limit: 1 })
    if (oldest === undefined) return false
    this.erase(runOf(oldest))
    return true
  }

  /** Removes up to `limit` entries of runs whose time has come. How many entries that were; fewer than `limit`: no run is left. */
  sweep (limit: number): number {
    const { table, now } = this.#runs
    let count = 0
    while (count < limit) {
      const [due] = table.keys({ from: keyOf(TAG.ended), to: keyOf(TAG.ended, now, BEHIND_ALL), limit: 1 })
      if (due === undefined) break
      count += this.erase(runOf(due)) + 1
    }
    return count
  }
}
