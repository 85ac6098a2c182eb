import { type RunPlan } from './pace.ts'
import { type Setup } from './peer.ts'

/** What a child process is started with, as JSON in its last argument. */
export interface ServerStart {
  readonly peer: string
  readonly setup: Setup
}

/** What the harness asks a server. */
export type ServerCommand =
  | { readonly do: 'begin', readonly gc: boolean }
  | { readonly do: 'end', readonly gc: boolean }
  | { readonly do: 'publish', readonly plan: PublishPlan }
  | { readonly do: 'subscribers', readonly count: number, readonly boundMs: number }

/** Events for the topic: `batch` of them every `intervalMs`. */
export interface PublishPlan {
  readonly events: number
  readonly batch: number
  readonly intervalMs: number
  /** After so many milliseconds the rest is not published any more. */
  readonly boundMs: number
}

/** What a server has spent between `begin` and `end`. */
export interface Usage {
  readonly cpuMicros: number
  readonly elapsedMs: number
  readonly rssBefore: number
  readonly rssAfter: number
  readonly rssPeak: number
}

/** Which stream a connection asks for. */
export interface RequestSpec {
  readonly peer: string
  readonly port: number
  readonly kind: 'run' | 'topic'
  readonly plan?: RunPlan
  readonly lastEventId?: string
}

/** What the harness asks the load. */
export type LoadCommand =
  | { readonly do: 'requests', readonly plan: RequestsPlan }
  | { readonly do: 'open', readonly request: RequestSpec, readonly count: number, readonly stall: boolean, readonly boundMs: number }
  | { readonly do: 'await', readonly events: number, readonly boundMs: number }
  | { readonly do: 'close' }

/** Requests that end, a number of them at a time. */
export interface RequestsPlan {
  readonly request: RequestSpec
  readonly total: number
  readonly inFlight: number
  /** Events each response has to bring. */
  readonly events: number
  /** The response ends by itself, or the client leaves when it has its events. */
  readonly until: 'end' | 'events'
  readonly boundMs: number
}

/** What the load has seen. */
export interface Seen {
  readonly events: number
  /** Connections that did not get their events. */
  readonly incomplete: number
  readonly elapsedMs: number
  /** Delivery latency of stamped events, in microseconds. */
  readonly latency?: { readonly p50: number, readonly p99: number, readonly max: number }
}
