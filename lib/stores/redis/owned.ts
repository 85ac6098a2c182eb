import { createHash } from 'node:crypto'

/** Ownerships remembered; beyond that the oldest is forgotten, and checked by its fence alone. */
const MAX_OWNED = 100_000

/**
 * Which ownerships were given to this process, by the key of their record. A Redis that lost its last second may give a fence a second
 * time; what it does not give twice is the mark, which is made of the lease's own operation. Who held the first one is refused by it.
 */
export class Owned {
  readonly #owned = new Map<string, { readonly fence: number, readonly mark: string }>()

  add (record: string, fence: number, op: string): void {
    this.#owned.delete(record)
    this.#owned.set(record, { fence, mark: markOf(op) })
    if (this.#owned.size > MAX_OWNED) this.#owned.delete(this.#owned.keys().next().value as string) // it is not empty
  }

  /** The mark of an ownership; empty for one that is not of this process. */
  mark (record: string, fence: number | undefined): string {
    const owned = this.#owned.get(record)
    return owned !== undefined && owned.fence === fence ? owned.mark : ''
  }

  /** The ownership has ended. */
  remove (record: string): void {
    this.#owned.delete(record)
  }
}

/** Short, because each entry of a log has it. */
export function markOf (op: string): string {
  return createHash('sha256').update(op).digest('base64url').slice(0, 8)
}
