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
import type { Store } from './store.ts'

/**
 * What a second, equal call does when the answer to the first was lost.
 * - `read`: there was no effect.
 * - `repeatable`: the second has no further effect and gives the first one's answer (`runs.update` if it carries an `op`).
 * - `once`: the caller can tell (its own value is there, say), or sees the effect twice.
 */
export type OperationKind = 'read' | 'repeatable' | 'once'

type Operations<Port> = { readonly [Name in keyof Port]: OperationKind }

const runs: Operations<RunStore> = { create: 'repeatable', get: 'read', update: 'repeatable', commit: 'repeatable', delete: 'repeatable' }
const log: Operations<EventLog> = { append: 'repeatable', read: 'read', saveFold: 'repeatable', loadFold: 'read' }
const leases: Operations<Leases> = { acquire: 'repeatable', takeover: 'repeatable', renew: 'repeatable', release: 'repeatable', expired: 'read' }
const nodes: Operations<Nodes> = { beat: 'repeatable', bind: 'repeatable', unbind: 'repeatable', orphans: 'read' }
const presence: Operations<Presence> = { enter: 'repeatable', leave: 'repeatable', nodes: 'read' }
const interrupts: Operations<InterruptStore> = {
  list: 'read', open: 'read', claim: 'repeatable', finish: 'repeatable', release: 'repeatable', abandon: 'repeatable'
}
const gates: Operations<GateStore> = { enter: 'repeatable', renew: 'repeatable', leave: 'repeatable', holder: 'read' }
const kv: Operations<Kv> = { get: 'read', set: 'repeatable', setIfAbsent: 'once', compareAndSet: 'once', delete: 'repeatable' }
const index: Operations<RunIndex> = { add: 'repeatable', list: 'read', last: 'read', find: 'read' }
const signals: Operations<Signals> = { publish: 'once', subscribe: 'once' }

/** The ports of a store. */
export type PortName = Exclude<keyof Store, 'close' | 'isVolatile' | 'isExclusive'>

/** Every operation of every port. A method missing here does not compile. */
export const STORE_OPERATIONS: { readonly [Name in PortName]: Operations<Store[Name]> } = {
  runs, log, leases, nodes, presence, interrupts, gates, kv, index, signals
}

/** `runs.commit`, `log.append`, ... and `close`. */
export type OperationName = { [Port in PortName]: `${Port}.${keyof Store[Port] & string}` }[PortName] | 'close'
