import { keyOf, TAG } from './keys.ts'
import type { Table } from './table.ts'

const KEY = keyOf(TAG.about, Buffer.from('bytes'))

/** How many bytes are kept: counted with each change, written with each batch, so that nothing is ever counted through. */
export class Usage {
  readonly #table: Table
  #bytes = 0
  #written = 0

  constructor (table: Table) {
    this.#table = table
    this.reload()
  }

  get bytes (): number { return this.#bytes }

  add (bytes: number): void {
    this.#bytes += bytes
  }

  /** Within the transaction of the changes that were counted. */
  save (): void {
    if (this.#bytes === this.#written) return
    const value = Buffer.allocUnsafe(8)
    value.writeDoubleLE(this.#bytes)
    this.#table.put(KEY, value)
    this.#written = this.#bytes
  }

  /** The changes did not happen. */
  reload (): void {
    this.#bytes = this.#written = this.#table.get(KEY)?.readDoubleLE() ?? 0
  }
}
