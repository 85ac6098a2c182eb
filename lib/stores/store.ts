import type { EventLog } from './event-log.ts'
import type { GateStore } from './gates.ts'
import type { InterruptStore } from './interrupts.ts'
import type { Kv } from './kv.ts'
import type { Leases } from './leases.ts'
import type { Nodes } from './nodes.ts'
import type { Presence } from './presence.ts'
import type { RunIndex } from './run-index.ts'
import type { RunStore } from './run-store.ts'
import type { Signals } from './signals.ts'

/**
 * Everything the run engine keeps. All ports of one store see each other's writes at once.
 *
 * Two groups of keys, and no operation is atomic across both (R20): run keys (`runs`, `log`, `leases`, `interrupts`, `presence`) and owner
 * keys (`index`, `gates`, `kv`). `nodes` and `signals` stand apart. A store has no retries of its own: who calls decides, and each method
 * says what a repetition does. It may hang while its backend is away; `withDeadline` bounds that (R9).
 */
export interface Store {
  readonly runs: RunStore
  readonly log: EventLog
  readonly leases: Leases
  readonly nodes: Nodes
  readonly presence: Presence
  readonly interrupts: InterruptStore
  readonly gates: GateStore
  readonly kv: Kv
  readonly index: RunIndex
  readonly signals: Signals
  /** Everything is gone with this process: nobody else will ever read it. @default false */
  readonly isVolatile?: boolean
  /** One process at a time reads and writes it: nobody takes a run over before that process has ended. @default false */
  readonly isExclusive?: boolean
  /** Ends timers and connections the store made itself; what was passed in stays open. Idempotent. */
  close (): Promise<void>
}
