import { type Bench } from './bench.ts'
import { type Setup, type WorkloadId } from './peer.ts'

/** Something a workload measures. */
export interface Metric {
  readonly key: string
  readonly label: string
  readonly better: 'higher' | 'lower'
  /** Decimals of the printed value. */
  readonly digits: number
}

/** How much of a workload is run; 1 is what performance.md says. */
export interface Size {
  /** Factor for events, requests and seconds. */
  readonly scale: number
  /** Connections instead of the workload's own number. */
  readonly count?: number
}

/** One of the workloads: a story for one server and one load. */
export interface Workload {
  readonly id: WorkloadId
  readonly title: string
  readonly metrics: readonly Metric[]
  /** In words, for the report. */
  describe (size: Size): string
  setup (size: Size): Omit<Setup, 'workload'>
  /** Measures once; throws `Unfinished` when the peer does not get through in time. */
  measure (bench: Bench, size: Size): Promise<Readonly<Record<string, number>>>
}

/** A peer did not finish a workload within its bound, or lost events. */
export class Unfinished extends Error {
  override name = 'Unfinished'
}

/** A scaled count, at least `min`. */
export function scaled (count: number, size: Size, min = 1): number {
  return Math.max(min, Math.round(count * size.scale))
}
