import { keyOf, TAG } from './keys.ts'
import type { Table } from './table.ts'
import type { Usage } from './usage.ts'

/** Bytes before a value: until when it lasts. */
const HEAD = 8

const NOTHING = Buffer.alloc(0)

/** A value and the moment from which it is not there any more. */
export interface Expiring {
  readonly until: number
  readonly value: Buffer
}

/** Values with a time to live. What has run out is absent at once and dropped by a sweep, which finds it by its time. */
export class ExpiringTable {
  readonly #table: Table
  readonly #usage: Usage

  constructor (table: Table, usage: Usage) {
    this.#table = table
    this.#usage = usage
  }

  /** What is kept, whether or not it has run out. */
  kept (key: Buffer): Expiring | undefined {
    const bytes = this.#table.get(key)
    return bytes && { until: bytes.readDoubleLE(), value: bytes.subarray(HEAD) }
  }

  /** The value, unless it has run out. */
  get (key: Buffer, now: number): Buffer | undefined {
    const kept = this.kept(key)
    return kept !== undefined && kept.until > now ? kept.value : undefined
  }

  /** Writes a value that lasts until then; Infinity: until it is removed. */
  put (key: Buffer, value: Buffer, until: number): void {
    this.#forget(key)
    const bytes = Buffer.allocUnsafe(HEAD + value.length)
    value.copy(bytes, bytes.writeDoubleLE(until))
    this.#table.put(key, bytes)
    this.#usage.add(bytes.length)
    if (until !== Infinity) this.#table.put(keyOf(TAG.due, until, key), NOTHING)
  }

  remove (key: Buffer): void {
    if (this.#forget(key)) this.#table.remove(key)
  }

  #forget (key: Buffer): boolean {
    const kept = this.kept(key)
    if (kept === undefined) return false
    this.#usage.add(-HEAD - kept.value.length)
    if (kept.until !== Infinity) this.#table.remove(keyOf(TAG.due, kept.until, key))
    return true
  }
}
