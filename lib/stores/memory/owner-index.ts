import { type IndexPosition, isOlder, positionOf } from '../rules/listing.ts'
import type { IndexEntry } from '../run-index.ts'

/** An entry and the moment it was added, by the store's clock. */
export interface StoredEntry extends IndexEntry {
  readonly addedAt: number
}

/** Entries in the order of `createdAt`, then id. */
export class SortedEntries {
  readonly #entries: StoredEntry[] = []

  get size (): number { return this.#entries.length }

  /** The entry at `index`, oldest first. */
  at (index: number): StoredEntry | undefined { return this.#entries[index] }

  /** How many entries are strictly older than `position`. */
  olderThan (position: IndexPosition): number {
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#entries[middle] as StoredEntry // low <= middle < high
      if (isOlder(positionOf(entry), position)) low = middle + 1
      else high = middle
    }
    return low
  }

  add (entry: StoredEntry): void {
    this.#entries.splice(this.olderThan(positionOf(entry)), 0, entry)
  }

  remove (entry: StoredEntry): void {
    this.#entries.splice(this.olderThan(positionOf(entry)), 1)
  }
}
