import type { Owner, RunKey } from './run-key.ts'
import type { RunRecord, RunState } from './run-store.ts'

/** What is indexed of a run; equal to the record that follows. */
export interface IndexEntry {
  readonly key: RunKey
  readonly clientId: string
  readonly session: string
  readonly createdAt: number
}

/** Which runs of an owner to list. */
export interface ListQuery {
  readonly protocol?: string
  readonly session?: string
  readonly agent?: string
  readonly states?: readonly RunState[]
  /** `cursor` of the page before. Opaque; one that is none of ours rejects with `AGT_ERR_STORE_CURSOR`. */
  readonly cursor?: string
  /** At most this many runs, 1 or more. */
  readonly limit: number
}

/** A page, newest first. It may hold fewer than `limit` runs, even none, and still have a successor: only an absent `cursor` is the end. */
export interface RunPage {
  readonly runs: readonly RunRecord[]
  readonly cursor?: string
}

/**
 * Lists and look-ups of one owner's runs. Entries are written before the record they point at and verified against it on read, so
 * that an entry without a record is never seen, and a record is never without an entry (R20).
 *
 * The order is `createdAt`, then `key.id`, newest first. A cursor stands between two runs: what is created or deleted while
 * a client pages is neither repeated nor makes others be skipped. States are those at the moment of reading.
 */
export interface RunIndex {
  /** Adds an entry; before `RunStore.create`. Idempotent. */
  add (entry: IndexEntry): Promise<void>

  list (owner: Owner, query: ListQuery): Promise<RunPage>

  /** The newest run of a session. */
  last (owner: Owner, protocol: string, session: string): Promise<RunRecord | undefined>

  /** The newest run that a client knows under this id. */
  find (owner: Owner, protocol: string, clientId: string): Promise<RunRecord | undefined>
}
