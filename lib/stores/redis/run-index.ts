import type { OperationName } from '../operations.ts'
import { formatCursor, type IndexPosition, matches, MAX_VISITS, ORPHAN_MS, parseCursor, positionOf } from '../rules/listing.ts'
import type { Owner, RunKey } from '../run-key.ts'
import type { IndexEntry, ListQuery, RunIndex, RunPage } from '../run-index.ts'
import type { RunRecord } from '../run-store.ts'
import { pairsOf } from './index-set.ts'
import type { RedisParts } from './parts.ts'
import { parseRecord } from './record.ts'
import { entryMember, idPart } from './runs.ts'
import { CORRECT } from './scripts/index-set.ts'
import { RECORD_FIELDS } from './scripts/record.ts'
import { ADD, DROP } from './scripts/run-index.ts'

/** Entries read in one step. */
const STEP = 50

/** Milliseconds after which one is looked at again whose record is there. */
const RECHECK_MS = 3_600_000

/** An entry of a list: where it stands, and what it points at. */
interface Entry {
  readonly member: string
  readonly createdAt: number
  readonly key: RunKey
  readonly session: string
  readonly clientId: string
}

/** {@link RunIndex} in Redis: sorted sets an owner, session and client id, by the time at which runs were made. */
export class RedisRunIndex implements RunIndex {
  readonly #parts: RedisParts

  constructor (parts: RedisParts) {
    this.#parts = parts
  }

  async add (entry: IndexEntry): Promise<void> {
    const { connection, keys, options: { idleTtlMs } } = this.#parts
    const { key: { owner, protocol }, session, clientId, createdAt } = entry
    const indexKeys = keys.index(owner, protocol, session, clientId)
    // The lists outlive what they point at.
    const due = pairsOf(await connection.runTimed('index.add', ADD, indexKeys, createdAt, entryMember(entry), idleTtlMs * 2, ORPHAN_MS) as readonly string[]) // as the script answers
    for (const { member, score } of due) await this.#check(parseEntry(owner, member, 0), score)
  }

  async list (owner: Owner, query: ListQuery): Promise<RunPage> {
    const { keys } = this.#parts
    const { protocol, session, limit } = query
    const name = protocol !== undefined && session !== undefined ? keys.sessionList(owner, protocol, session) : keys.ownerList(owner)
    const runs: RunRecord[] = []
    let visits = 0
    let before: Entry | undefined
    for await (const { entry, record } of this.#newestFirst('index.list', owner, name, query.cursor)) {
      if (before !== undefined && (runs.length === limit || visits === MAX_VISITS)) return { runs, cursor: formatCursor(positionOf(before)) }
      before = entry
      visits++
      if (record !== undefined && matches(record, query)) runs.push(record)
    }
    return { runs }
  }

  async last (owner: Owner, protocol: string, session: string): Promise<RunRecord | undefined> {
    return await this.#newest('index.last', owner, this.#parts.keys.sessionList(owner, protocol, session))
  }

  async find (owner: Owner, protocol: string, clientId: string): Promise<RunRecord | undefined> {
    return await this.#newest('index.find', owner, this.#parts.keys.clientList(owner, protocol, clientId))
  }

  async #newest (operation: OperationName, owner: Owner, name: string): Promise<RunRecord | undefined> {
    for await (const { record } of this.#newestFirst(operation, owner, name, undefined, 1)) if (record !== undefined) return record
    return undefined
  }

  /** The entries of a list, each with its record if there is one. What has lost its record is dropped on the way. */
  async * #newestFirst (operation: OperationName, owner: Owner, name: string, cursor: string | undefined, first = STEP): AsyncGenerator<{ readonly entry: Entry, readonly record: RunRecord | undefined }, void, undefined> {
    const { connection, keys } = this.#parts
    let position: IndexPosition | undefined = cursor === undefined ? undefined : parseCursor(cursor)
    for (let step = first; ; step = STEP) {
      const entries = await this.#page(operation, owner, name, position, step)
      const records = await Promise.all(entries.map(({ key }) => connection.command(operation, 'HMGET', keys.run(key)[0], ...RECORD_FIELDS)))
      for (const [index, entry] of entries.entries()) {
        const record = parseRecord(records[index] as (string | null)[]) // as HMGET answers
        if (record === undefined) await this.#drop(operation, entry, '')
        yield { entry, record }
        position = positionOf(entry)
      }
      if (entries.length < step) return
    }
  }

  /** Up to `count` entries from a position on. Entries of the same time are passed over one page after the other. */
  async #page (operation: OperationName, owner: Owner, name: string, position: IndexPosition | undefined, count: number): Promise<readonly Entry[]> {
    const { connection } = this.#parts
    const entries: Entry[] = []
    for (let offset = 0; entries.length < count; offset += count) {
      const list = await connection.command(
        operation, 'ZRANGE', name, position?.createdAt ?? '+inf', '-inf', 'BYSCORE', 'REV', 'LIMIT', offset, count, 'WITHSCORES') as readonly string[] // as ZRANGE answers
      for (const { member, score } of pairsOf(list)) {
        const entry = parseEntry(owner, member, Number(score))
        if (entries.length < count && (position === undefined || isOlder(entry, position))) entries.push(entry)
      }
      if (list.length < count * 2) break
    }
    return entries
  }

  /** Looks at an entry whose time has come: it goes with its record. */
  async #check (entry: Entry, score: string): Promise<void> {
    const { connection, keys } = this.#parts
    const left = Number(await connection.command('index.add', 'PTTL', keys.run(entry.key)[0]))
    if (left === -2) {
      await this.#drop('index.add', entry, score)
      return
    }
    const at = Number(score) - ORPHAN_MS + Math.min(left + 1_000, RECHECK_MS)
    const [, , , checks] = this.#keysOf(entry)
    await connection.run('index.add', CORRECT, [checks], entry.member, score, at)
  }

  async #drop (operation: OperationName, entry: Entry, score: string): Promise<void> {
    await this.#parts.connection.runTimed(operation, DROP, this.#keysOf(entry), entry.member, score)
  }

  #keysOf ({ key, session, clientId }: Entry): readonly [string, string, string, string] {
    return this.#parts.keys.index(key.owner, key.protocol, session, clientId)
  }
}

/** Whether an entry is older than a position. Redis sorts members of one score by their bytes. */
function isOlder ({ createdAt, member }: Entry, position: IndexPosition): boolean {
  if (createdAt !== position.createdAt) return createdAt < position.createdAt
  return Buffer.compare(Buffer.from(member), Buffer.from(idPart(position.id))) < 0
}

function parseEntry (owner: Owner, member: string, createdAt: number): Entry {
  const tab = member.indexOf('\t')
  const [protocol, session, clientId] = JSON.parse(member.slice(tab + 1)) as [string, string, string] // as `entryMember` wrote it
  const id = JSON.parse(`"${member.slice(0, tab)}"`) as string
  return { member, createdAt, key: { owner, protocol, id }, session, clientId }
}
