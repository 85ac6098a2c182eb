import type { RootDatabase } from 'lmdb'
import { behind } from './keys.ts'
import { StoreClosedError } from './errors.ts'

/** The database as it is used here: keys and values are bytes. */
export type Bytes = RootDatabase<Buffer, Buffer>

/** A stretch of keys. */
export interface Scan {
  /** First key of the stretch, or a prefix of it. */
  readonly from: Buffer
  /** The key that ends it and is no part of it. @default behind all keys that begin with `from` */
  readonly to?: Buffer
  /** From its end to its beginning. @default false */
  readonly isReverse?: boolean
  readonly limit?: number
}

/** An entry of a scan. */
export interface Entry {
  readonly key: Buffer
  readonly value: Buffer
}

/** What has been asked of a {@link Table}. */
export interface TableCounts { gets: number, puts: number, removes: number, scans: number, scanned: number }

/**
 * All entries of a data directory. Reads see the last commit, or, within a transaction, what it has written so far. It counts what
 * it is asked for, which is how a test can tell that the work for one run does not depend on how many others there are.
 */
export class Table {
  readonly counts: TableCounts = { gets: 0, puts: 0, removes: 0, scans: 0, scanned: 0 }
  readonly #db: Bytes
  #isClosed = false

  constructor (db: Bytes) {
    this.#db = db
  }

  get (key: Buffer): Buffer | undefined {
    this.#check()
    this.counts.gets++
    return this.#db.get(key)
  }

  /** Within a transaction only. */
  put (key: Buffer, value: Buffer): void {
    this.counts.puts++
    this.#db.putSync(key, value)
  }

  /** Within a transaction only. */
  remove (key: Buffer): void {
    this.counts.removes++
    this.#db.removeSync(key)
  }

  /** The keys of a stretch, in order. */
  * keys (scan: Scan): Generator<Buffer, void, undefined> {
    for (const key of this.#db.getKeys(this.#range(scan))) {
      this.counts.scanned++
      yield Buffer.from(key)
    }
  }

  /** The entries of a stretch, in order. */
  * entries (scan: Scan): Generator<Entry, void, undefined> {
    for (const { key, value } of this.#db.getRange(this.#range(scan))) {
      this.counts.scanned++
      yield { key: Buffer.from(key), value }
    }
  }

  /** Runs `act`, whose writes become true together or, where it throws, not at all. Resolves when they are visible. */
  async transaction (act: () => void): Promise<void> {
    this.#check()
    await this.#db.childTransaction(act)
  }

  /** Resolves when everything committed so far is on the disk. */
  async flushed (): Promise<void> {
    await this.#db.flushed
  }

  /** Every later read throws `AGT_ERR_STORE_CLOSED`. */
  async close (): Promise<void> {
    this.#isClosed = true
    await this.#db.close()
  }

  #range ({ from, to, isReverse = false, limit }: Scan) {
    this.#check()
    this.counts.scans++
    const end = to ?? behind(from)
    return { ...isReverse ? { start: end, end: from, reverse: true } : { start: from, end }, ...limit !== undefined && { limit } }
  }

  #check (): void {
    if (this.#isClosed) throw new StoreClosedError()
  }
}
