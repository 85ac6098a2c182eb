import { ownerText, type JsonValue, type Owner, type RunIndex } from '../stores/index.ts'
import { StorageLimitError } from './errors.ts'

/** Milliseconds after which what other nodes have stored, and what has expired, is looked for again. */
const REFRESH_MS = 60_000
/** The same for an owner who is refused: something may have expired meanwhile. */
const REFUSED_REFRESH_MS = 5_000
/** Owners that are remembered; the one that was not asked for longest is forgotten. */
const MAX_OWNERS = 1_000
const PAGE = 100

interface Sum {
  bytes: number
  readonly at: number
}

/** What the limit needs. */
export interface StoredBytesOptions {
  readonly index: RunIndex
  readonly maxStoredBytes: number
}

/**
 * Limits what the store keeps for one owner. The truth is the sum over the records that are still there, so that nothing has to be corrected
 * when runs expire, end elsewhere or are deleted; between two looks at it this node adds what it stores itself. Several nodes together may
 * exceed the limit by what the others store within {@link REFRESH_MS}, and each by the logs of the runs that are under way.
 */
export class StoredBytes {
  readonly #options: StoredBytesOptions
  readonly #sums = new Map<string, Sum>()

  constructor (options: StoredBytesOptions) {
    this.#options = options
  }

  /** What a run's request takes in the store; roughly, by the length of its text. */
  sizeOf (stored: JsonValue | undefined): number {
    return stored === undefined ? 0 : JSON.stringify(stored).length
  }

  /** Refuses a start that would exceed the limit. @throws AGT_ERR_RUN_STORAGE_LIMIT, AGT_ERR_STORE_UNAVAILABLE */
  async check (owner: Owner, bytes: number): Promise<void> {
    const { maxStoredBytes } = this.#options
    const isFull = (sum: Sum): boolean => sum.bytes + bytes > maxStoredBytes
    const known = this.#sums.get(ownerText(owner))
    const age = known === undefined ? Infinity : performance.now() - known.at
    const sum = known === undefined || age >= (isFull(known) ? REFUSED_REFRESH_MS : REFRESH_MS) ? await this.#look(owner) : known
    if (isFull(sum)) throw new StorageLimitError(maxStoredBytes)
  }

  /** This node has stored so much more. */
  add (owner: Owner, bytes: number): void {
    const sum = this.#sums.get(ownerText(owner))
    if (sum !== undefined) sum.bytes += bytes
  }

  async #look (owner: Owner): Promise<Sum> {
    const { index, maxStoredBytes } = this.#options
    const sum: Sum = { bytes: 0, at: performance.now() }
    let cursor: string | undefined
    do {
      const page = await index.list(owner, { limit: PAGE, ...cursor !== undefined && { cursor } })
      for (const { bytes = 0 } of page.runs) sum.bytes += bytes
      cursor = page.cursor
      // More than that need not be known.
    } while (cursor !== undefined && sum.bytes <= maxStoredBytes)
    const text = ownerText(owner)
    this.#sums.delete(text)
    this.#sums.set(text, sum)
    const [oldest] = this.#sums.keys()
    if (this.#sums.size > MAX_OWNERS && oldest !== undefined) this.#sums.delete(oldest)
    return sum
  }
}
