export const WORKLOAD_IDS = ['W1', 'W1t', 'W2', 'W3', 'W4', 'W5', 'W6'] as const
export type WorkloadId = typeof WORKLOAD_IDS[number]

/** What a server is told before it listens. */
export interface Setup {
  readonly workload: WorkloadId
  /** Milliseconds between the heartbeats of an idle connection. */
  readonly heartbeatMs: number
  /** Events that stand in the topic before the first request, for W5; 0 for the rest. */
  readonly replayEvents: number
}

/** A server that listens. Runs are under `/run`, the topic under `/topic`, unless `requests.ts` knows better. */
export interface Endpoint {
  readonly port: number
  /** The Last-Event-ID of a client that has seen nothing of the topic yet. */
  readonly lastEventId: string
  /** Sends one event to each subscriber of the topic. A promise is awaited before the next one. */
  publish (stamp: string): void | Promise<void>
  /** Subscribers of the topic at this moment. */
  subscribers (): number
}

/** One way to write server-sent events. */
export interface Peer {
  readonly name: string
  /** Packages of `examples/benchmark` that it needs. */
  readonly packages: readonly string[]
  /** The workloads it has an answer to; the others are reported as n/a. */
  readonly workloads: readonly WorkloadId[]
  listen (setup: Setup): Promise<Endpoint>
}
