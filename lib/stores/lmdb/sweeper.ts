import { HASH_BYTES, keyOf, TAG } from './keys.ts'
import type { Eraser } from './eraser.ts'
import type { Table } from './table.ts'
import type { WriteQueue } from './write-queue.ts'

/** Entries removed by one transaction, so that a sweep never holds up what is written beside it. */
const BATCH = 500

/** Removes one kind of thing whose time has come, by the key that was noted for it. */
export type DropDue = (key: Buffer) => void

/** Removes what has run out, in small transactions between all others, for as long as there is any. */
export class Sweeper {
  readonly #table: Table
  readonly #queue: WriteQueue
  readonly #eraser: Eraser
  readonly #now: () => number
  readonly #drops = new Map<number, DropDue>()
  readonly #timer: NodeJS.Timeout
  #sweeping: Promise<void> | undefined
  #isClosed = false

  constructor (table: Table, queue: WriteQueue, eraser: Eraser, { now, sweepMs }: { readonly now: () => number, readonly sweepMs: number }) {
    this.#table = table
    this.#queue = queue
    this.#eraser = eraser
    this.#now = now
    // A sweep that fails is followed by the next one.
    this.#timer = setInterval(() => { this.sweep().catch(() => {}) }, sweepMs).unref()
  }

  /** Says how things are dropped whose keys have this tag. */
  register (tag: number, drop: DropDue): void {
    this.#drops.set(tag, drop)
  }

  /** One sweep; a call during another one waits for that. */
  sweep (): Promise<void> {
    this.#sweeping ??= this.#sweep().finally(() => { this.#sweeping = undefined })
    return this.#sweeping
  }

  close (): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #sweep (): Promise<void> {
    let count = BATCH
    while (count >= BATCH && !this.#isClosed) {
      count = this.#hasDue() ? await this.#queue.write(() => this.#eraser.sweep(BATCH) + this.#dropDue()) : 0
    }
  }

  /** Whether there is anything to do: otherwise nothing is written at all. */
  #hasDue (): boolean {
    const now = this.#now()
    return [TAG.ended, TAG.due].some((tag) => {
      const [first] = this.#table.keys({ from: keyOf(tag), to: endOf(tag, now), limit: 1 })
      return first !== undefined
    })
  }

  #dropDue (): number {
    const due = [...this.#table.keys({ from: keyOf(TAG.due), to: endOf(TAG.due, this.#now()), limit: BATCH })]
    for (const key of due) {
      const target = key.subarray(9)
      this.#table.remove(key)
      this.#drops.get(target[0] as number)?.(target) // every key has a tag
    }
    return due.length
  }
}

/** Behind everything that is due by now. */
function endOf (tag: number, now: number): Buffer {
  return keyOf(tag, now, Buffer.alloc(HASH_BYTES * 2, 0xff))
}
