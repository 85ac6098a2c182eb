import type { IndexEntry } from '../run-index.ts'
import type { Owner, RunKey } from '../run-key.ts'
import type { RunState } from '../run-store.ts'
import { type IndexPosition, isOlder } from '../rules/listing.ts'
import { jsonBytes, jsonOf } from './json-bytes.ts'
import { HASH_BYTES, keyOf, orderedAt, ownedHashOf, PART, partKey, TAG } from './keys.ts'
import type { Table } from './table.ts'

/** Where a list's key has the time of creation. */
const TIME_AT = 1 + HASH_BYTES

/** What a list says of one run. */
export interface Listed extends IndexPosition {
  readonly run: Buffer
}

/** What is listed of a run by its state. */
type Dated = Pick<IndexEntry, 'key' | 'createdAt'>

/** Sorted lists of runs: of an owner, of a session, under a client's id, and of an owner in one state. */
export class ListTable {
  readonly #table: Table

  constructor (table: Table) {
    this.#table = table
  }

  /** The entry that was announced for a run. */
  entry (run: Buffer): IndexEntry | undefined {
    const bytes = this.#table.get(partKey(run, PART.entry))
    return bytes && jsonOf<IndexEntry>(bytes)
  }

  add (run: Buffer, entry: IndexEntry): void {
    this.#table.put(partKey(run, PART.entry), jsonBytes(entry))
    for (const list of listsOf(entry)) this.#table.put(keyOf(TAG.list, list, entry.createdAt, run), jsonBytes(entry.key.id))
  }

  remove (run: Buffer, entry: IndexEntry): void {
    this.#table.remove(partKey(run, PART.entry))
    for (const list of listsOf(entry)) this.#table.remove(keyOf(TAG.list, list, entry.createdAt, run))
  }

  /** Lists a run under a state, or no longer. */
  setState ({ key, createdAt }: Dated, run: Buffer, state: RunState, isListed: boolean): void {
    const listKey = keyOf(TAG.list, stateList(key.owner, state), createdAt, run)
    if (isListed) this.#table.put(listKey, jsonBytes(key.id))
    else this.#table.remove(listKey)
  }

  /** The runs of a list, newest first, those older than `before`. */
  * walk (list: Buffer, before?: IndexPosition): Generator<Listed, void, undefined> {
    const from = keyOf(TAG.list, list)
    const to = before && keyOf(TAG.list, list, before.createdAt, Buffer.alloc(HASH_BYTES + 1, 0xff))
    let tie: Listed[] = []
    for (const { key, value } of this.#table.entries({ from, ...to !== undefined && { to }, isReverse: true })) {
      const listed: Listed = { createdAt: orderedAt(key, TIME_AT), id: jsonOf<string>(value), run: key.subarray(TIME_AT + 8) }
      if (before !== undefined && !isOlder(listed, before)) continue
      // Created in the same moment: a key has no id to sort by.
      if (tie[0] !== undefined && tie[0].createdAt !== listed.createdAt) {
        yield * inOrder(tie)
        tie = []
      }
      tie.push(listed)
    }
    yield * inOrder(tie)
  }

  /** The runs of several lists, each run in one of them at most. */
  * merge (lists: readonly Buffer[], before?: IndexPosition): Generator<Listed, void, undefined> {
    const walks = lists.map((list) => this.walk(list, before))
    try {
      const heads = walks.map((walk) => walk.next())
      for (;;) {
        let newest = -1
        for (const [index, head] of heads.entries()) {
          if (head.done === true) continue
          const best = heads[newest]
          if (best === undefined || best.done === true || isOlder(best.value, head.value)) newest = index
        }
        const head = heads[newest]
        if (head === undefined || head.done === true) return
        yield head.value
        heads[newest] = (walks[newest] as Generator<Listed, void, undefined>).next() // as many walks as heads
      }
    } finally {
      for (const walk of walks) walk.return()
    }
  }
}

export function ownerList (owner: Owner): Buffer {
  return ownedHashOf('owner', owner)
}

export function sessionList ({ owner, protocol }: Pick<RunKey, 'owner' | 'protocol'>, session: string): Buffer {
  return ownedHashOf('runs of session', owner, protocol, session)
}

export function clientList ({ owner, protocol }: Pick<RunKey, 'owner' | 'protocol'>, clientId: string): Buffer {
  return ownedHashOf('client', owner, protocol, clientId)
}

export function stateList (owner: Owner, state: RunState): Buffer {
  return ownedHashOf('state', owner, state)
}

function listsOf ({ key, session, clientId }: IndexEntry): readonly Buffer[] {
  return [ownerList(key.owner), sessionList(key, session), clientList(key, clientId)]
}

function inOrder (tie: Listed[]): readonly Listed[] {
  return tie.length === 1 ? tie : tie.sort((a, b) => isOlder(a, b) ? 1 : -1)
}
