/** Middle, smallest and largest of some repetitions. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The spread of at least one value. */
export function spreadOf (values: readonly number[]): Spread {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1
    ? percentile(sorted, 0.5)
    : ((sorted[middle - 1] ?? NaN) + (sorted[middle] ?? NaN)) / 2
  return { median, min: percentile(sorted, 0), max: percentile(sorted, 1) }
}

/** The value below which `share` (0 to 1) of the sorted values lie, by nearest rank. */
export function percentile (sorted: Float64Array, share: number): number {
  const index = Math.max(0, Math.ceil(share * sorted.length) - 1)
  return sorted[index] ?? NaN
}

/** How a spread lies to a limit: a range that straddles it says nothing. */
export type Side = 'above' | 'below' | 'straddles'

export function sideOf (spread: Spread, limit: number): Side {
  if (spread.min === limit && spread.max === limit) return 'straddles'
  if (spread.min >= limit) return 'above'
  if (spread.max <= limit) return 'below'
  return 'straddles'
}
