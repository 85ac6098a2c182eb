import { StoreCursorError } from '../errors.ts'
import type { IndexEntry, ListQuery } from '../run-index.ts'
import type { RunRecord } from '../run-store.ts'

/** Entries one call of `list` looks at before it returns a short page. */
export const MAX_VISITS = 1_000

/** Milliseconds after which an entry that no record followed is dropped. */
export const ORPHAN_MS = 600_000

/** Where a listing goes on: strictly older than this. */
export interface IndexPosition {
  readonly createdAt: number
  readonly id: string
}

/** The position of an entry itself. */
export function positionOf ({ createdAt, key }: Pick<IndexEntry, 'createdAt' | 'key'>): IndexPosition {
  return { createdAt, id: key.id }
}

/** Whether `a` comes after `b` in a list that begins with the newest. */
export function isOlder (a: IndexPosition, b: IndexPosition): boolean {
  return a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.id < b.id)
}

/** Whether a record is one of those that a query asks for. */
export function matches (record: RunRecord, { protocol, session, agent, states }: ListQuery): boolean {
  return (protocol === undefined || record.key.protocol === protocol) &&
    (session === undefined || record.session === session) &&
    (agent === undefined || record.agent === agent) &&
    (states === undefined || states.includes(record.state))
}

/** A cursor that stands at a position. */
export function formatCursor ({ createdAt, id }: IndexPosition): string {
  return Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')
}

/** @throws AGT_ERR_STORE_CURSOR for a text that is no cursor */
export function parseCursor (cursor: string): IndexPosition {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(parsed) && parsed.length === 2) {
      const [createdAt, id]: unknown[] = parsed
      if (typeof createdAt === 'number' && typeof id === 'string') return { createdAt, id }
    }
  } catch {
    // Not JSON: answered below like any other text that is no cursor.
  }
  throw new StoreCursorError()
}
