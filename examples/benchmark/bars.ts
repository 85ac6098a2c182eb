import { type WorkloadId } from './peer.ts'

/** What our own peers must reach. `of` says whether the limit is for the ratio to another peer or for the value itself. */
export interface Bar {
  readonly workload: WorkloadId
  readonly peer: string
  readonly metric: string
  readonly of: 'ratio' | 'value'
  /** The peer that a ratio is to. @default the anchor, raw-limit */
  readonly to?: string
  readonly limit: number
}

export const BARS: readonly Bar[] = [
  { workload: 'W1', peer: 'event-stream', metric: 'eventsPerCpuSecond', of: 'ratio', limit: 1 },
  { workload: 'W1', peer: 'ag-ui', metric: 'eventsPerCpuSecond', of: 'ratio', limit: 0.8 },
  // What a store costs the caller's own stream, and what another node does to its latency.
  { workload: 'W1', peer: 'ag-ui-redis', metric: 'eventsPerCpuSecond', of: 'ratio', to: 'ag-ui', limit: 0.7 },
  { workload: 'W1', peer: 'ag-ui-lmdb', metric: 'eventsPerCpuSecond', of: 'ratio', to: 'ag-ui', limit: 0.6 },
  { workload: 'W2', peer: 'ag-ui-nodes', metric: 'p50Micros', of: 'value', limit: 5_000 },
  { workload: 'W2', peer: 'ag-ui-nodes', metric: 'p99Micros', of: 'value', limit: 50_000 },
  { workload: 'W2', peer: 'event-stream', metric: 'p50Micros', of: 'ratio', limit: 1 },
  { workload: 'W2', peer: 'ag-ui', metric: 'p50Micros', of: 'ratio', limit: 1 },
  { workload: 'W3', peer: 'event-stream', metric: 'deliveriesPerCpuSecond', of: 'ratio', limit: 1 },
  { workload: 'W4', peer: 'event-stream', metric: 'kilobytesPerConnection', of: 'value', limit: 12 },
  { workload: 'W5', peer: 'event-stream', metric: 'replaysPerCpuSecond', of: 'ratio', limit: 1 },
  { workload: 'W6', peer: 'event-stream', metric: 'megabytes', of: 'value', limit: 30 }
]
