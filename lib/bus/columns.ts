/** Events, and characters of payload, that stand together at most. */
export const MAX_EVENTS = 256
export const MAX_SIZE = 32 * 1024

/** What events that follow each other have beside their payloads, one column a member: most have nothing. */
export interface Columns {
  /** Names, as many as events; absent where no event has one. */
  readonly names: readonly (string | undefined)[] | undefined
  readonly levels: readonly (number | undefined)[] | undefined
  /** Every payload is known to be one line. */
  readonly areLines: boolean
}

/** {@link Columns} to which events are added at the end. */
export class GrowingColumns implements Columns {
  length = 0
  names: (string | undefined)[] | undefined
  levels: (number | undefined)[] | undefined
  areLines = true

  /** Adds what an event has. */
  protected note (event: string | undefined, level: number | undefined, isLine: boolean): void {
    if (event !== undefined) this.names ??= nothing(this.length)
    if (level !== undefined) this.levels ??= nothing(this.length)
    this.names?.push(event)
    this.levels?.push(level)
    if (!isLine) this.areLines = false
    this.length++
  }

  /** A copy of those of `count` events from an index on. */
  part (from: number, count: number): Columns {
    return { names: partOf(this.names, from, count), levels: partOf(this.levels, from, count), areLines: this.areLines }
  }
}

function nothing (count: number): undefined[] {
  return Array.from({ length: count }, () => undefined)
}

function partOf<T> (column: readonly (T | undefined)[] | undefined, from: number, count: number): readonly (T | undefined)[] | undefined {
  const part = column?.slice(from, from + count)
  return part?.some((value) => value !== undefined) === true ? part : undefined
}
