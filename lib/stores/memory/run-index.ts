import { frozenJson } from '../rules/frozen-json.ts'
import { formatCursor, matches, MAX_VISITS, ORPHAN_MS, parseCursor, positionOf } from '../rules/listing.ts'
import { type Owner, ownerText, runKeyText } from '../run-key.ts'
import type { IndexEntry, ListQuery, RunIndex, RunPage } from '../run-index.ts'
import type { RunRecord } from '../run-store.ts'
import { SortedEntries, type StoredEntry } from './owner-index.ts'
import type { MemoryState } from './state.ts'

/** {@link RunIndex} in memory. */
export class MemoryRunIndex implements RunIndex {
  readonly #state: MemoryState
  readonly #entries = new Map<string, StoredEntry>()
  /** One sorted list an owner, a session, a client id. */
  readonly #lists = new Map<string, SortedEntries>()

  constructor (state: MemoryState) {
    this.#state = state
    state.onDrop.push(({ text }) => this.#remove(text))
    state.register({ sweep: (now) => this.#sweep(now - ORPHAN_MS), isEmpty: () => this.#entries.size === 0 })
  }

  async add (entry: IndexEntry): Promise<void> {
    const text = runKeyText(entry.key)
    if (this.#entries.has(text)) return
    // Entries without a record are bounded like the records they announce: half of so many have none, and go.
    if (this.#entries.size >= this.#state.options.maxRuns * 2) this.#sweep(Infinity)
    const stored = { ...frozenJson(entry), addedAt: this.#state.now }
    this.#entries.set(text, stored)
    for (const name of listsOf(stored)) {
      let list = this.#lists.get(name)
      if (list === undefined) this.#lists.set(name, list = new SortedEntries())
      list.add(stored)
    }
    this.#state.keepSwept()
  }

  async list (owner: Owner, query: ListQuery): Promise<RunPage> {
    const before = query.cursor === undefined ? undefined : parseCursor(query.cursor)
    const entries = this.#lists.get(ownerList(owner))
    const runs: RunRecord[] = []
    if (entries === undefined) return { runs }
    const start = before === undefined ? entries.size : entries.olderThan(before)
    for (let index = start - 1; index >= 0; index--) {
      const entry = entries.at(index) as StoredEntry // 0 <= index < size
      const record = this.#verified(entry)
      if (record !== undefined && matches(record, query)) runs.push(record)
      const full = runs.length === query.limit || start - index === MAX_VISITS
      if (full && index > 0) return { runs, cursor: formatCursor(positionOf(entry)) }
      if (full) break
    }
    return { runs }
  }

  async last (owner: Owner, protocol: string, session: string): Promise<RunRecord | undefined> {
    return this.#newest(sessionList(owner, protocol, session))
  }

  async find (owner: Owner, protocol: string, clientId: string): Promise<RunRecord | undefined> {
    return this.#newest(clientList(owner, protocol, clientId))
  }

  #newest (name: string): RunRecord | undefined {
    const entries = this.#lists.get(name)
    for (let index = (entries?.size ?? 0) - 1; index >= 0; index--) {
      const entry = entries?.at(index)
      const record = entry && this.#verified(entry)
      if (record !== undefined) return record
    }
    return undefined
  }

  #verified (entry: StoredEntry): RunRecord | undefined {
    return this.#state.find(entry.key)?.record
  }

  #remove (text: string): void {
    const entry = this.#entries.get(text)
    if (entry === undefined) return
    this.#entries.delete(text)
    for (const name of listsOf(entry)) {
      const list = this.#lists.get(name)
      list?.remove(entry)
      if (list?.size === 0) this.#lists.delete(name)
    }
  }

  #sweep (addedBefore: number): void {
    for (const [text, entry] of this.#entries) {
      if (entry.addedAt <= addedBefore && this.#verified(entry) === undefined) this.#remove(text)
    }
  }
}

function listsOf ({ key, session, clientId }: IndexEntry): readonly string[] {
  return [ownerList(key.owner), sessionList(key.owner, key.protocol, session), clientList(key.owner, key.protocol, clientId)]
}

function ownerList (owner: Owner): string {
  return JSON.stringify(['owner', ownerText(owner)])
}

function sessionList (owner: Owner, protocol: string, session: string): string {
  return JSON.stringify(['session', ownerText(owner), protocol, session])
}

function clientList (owner: Owner, protocol: string, clientId: string): string {
  return JSON.stringify(['client', ownerText(owner), protocol, clientId])
}
