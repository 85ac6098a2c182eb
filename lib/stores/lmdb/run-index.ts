import type { IndexEntry, ListQuery, RunIndex, RunPage } from '../run-index.ts'
import { formatCursor, matches, MAX_VISITS, ORPHAN_MS, parseCursor } from '../rules/listing.ts'
import type { Owner } from '../run-key.ts'
import type { RunRecord } from '../run-store.ts'
import { keyOf, runHashOf, TAG } from './keys.ts'
import { clientList, type Listed, ownerList, sessionList, stateList } from './list-table.ts'
import type { LmdbParts } from './parts.ts'
import { runOf } from './run-table.ts'

const NOTHING = Buffer.alloc(0)

/** {@link RunIndex} in LMDB. */
export class LmdbRunIndex implements RunIndex {
  readonly #parts: LmdbParts

  constructor (parts: LmdbParts) {
    this.#parts = parts
    parts.sweeper.register(TAG.run, (key) => { this.#dropUnfollowed(runOf(key)) })
  }

  async add (entry: IndexEntry): Promise<void> {
    const { key, clientId, session, createdAt } = entry
    const { runs, table, queue } = this.#parts
    const run = runHashOf(key)
    await queue.write(() => {
      if (runs.lists.entry(run) !== undefined) return
      runs.lists.add(run, { key, clientId, session, createdAt })
      table.put(keyOf(TAG.due, runs.now + ORPHAN_MS, keyOf(TAG.run, run)), NOTHING)
    })
  }

  async list (owner: Owner, query: ListQuery): Promise<RunPage> {
    const before = query.cursor === undefined ? undefined : parseCursor(query.cursor)
    const runs: RunRecord[] = []
    let visits = 0
    let last: Listed | undefined
    for (const listed of this.#parts.runs.lists.merge(listsFor(owner, query), before)) {
      // Only now is it known that there is one behind the last.
      if (last !== undefined && (runs.length === query.limit || visits === MAX_VISITS)) return { runs, cursor: formatCursor(last) }
      const record = this.#record(listed)
      if (record !== undefined && matches(record, query)) runs.push(record)
      visits++
      last = listed
    }
    return { runs }
  }

  async last (owner: Owner, protocol: string, session: string): Promise<RunRecord | undefined> {
    return this.#newest(sessionList({ owner, protocol }, session))
  }

  async find (owner: Owner, protocol: string, clientId: string): Promise<RunRecord | undefined> {
    return this.#newest(clientList({ owner, protocol }, clientId))
  }

  #newest (list: Buffer): RunRecord | undefined {
    for (const listed of this.#parts.runs.lists.walk(list)) {
      const record = this.#record(listed)
      if (record !== undefined) return record
    }
    return undefined
  }

  #record ({ run }: Listed): RunRecord | undefined {
    const { runs } = this.#parts
    const found = runs.findHash(run)
    return found && runs.record(found).record
  }

  /** An entry that no record followed. */
  #dropUnfollowed (run: Buffer): void {
    const { runs } = this.#parts
    const entry = runs.exists(run) ? undefined : runs.lists.entry(run)
    if (entry !== undefined) runs.lists.remove(run, entry)
  }
}

/** The shortest lists that together hold everything asked for. */
function listsFor (owner: Owner, { protocol, session, states }: ListQuery): readonly Buffer[] {
  if (protocol !== undefined && session !== undefined) return [sessionList({ owner, protocol }, session)]
  if (states !== undefined) return [...new Set(states)].map((state) => stateList(owner, state))
  return [ownerList(owner)]
}
