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

/** Whether an operation may leave something behind in the backend when its answer is lost. */
export type OperationKind = 'read' | 'write'

type Operations<Port> = { readonly [Name in keyof Port]: OperationKind }

const runs: Operations<RunStore> = { create: 'write', get: 'read', update: 'write', commit: 'write', delete: 'write' }
const log: Operations<EventLog> = { append: 'write', read: 'read', saveFold: 'write', loadFold: 'read' }
const leases: Operations<Leases> = { acquire: 'write', takeover: 'write', renew: 'write', release: 'write', expired: 'read' }
const nodes: Operations<Nodes> = { beat: 'write', bind: 'write', unbind: 'write', orphans: 'read' }
const presence: Operations<Presence> = { enter: 'write', leave: 'write', nodes: 'read' }
const interrupts: Operations<InterruptStore> = {
  list: 'read', open: 'read', claim: 'write', finish: 'write', release: 'write', abandon: 'write'
}
const gates: Operations<GateStore> = { enter: 'write', renew: 'write', leave: 'write', holder: 'read' }
const kv: Operations<Kv> = { get: 'read', set: 'write', setIfAbsent: 'write', compareAndSet: 'write', delete: 'write' }
const index: Operations<RunIndex> = { add: 'write', list: 'read', last: 'read', find: 'read' }
const signals: Operations<Signals> = { publish: 'write', subscribe: 'write' }

/** The ports of a store. */
export type PortName = Exclude<keyof Store, 'close'>

/** Every operation of every port. A method missing here does not compile. */
export const STORE_OPERATIONS: { readonly [Name in PortName]: Operations<Store[Name]> } = {
  runs, log, leases, nodes, presence, interrupts, gates, kv, index, signals
}

/** `runs.commit`, `log.append`, ... and `close`. */
export type OperationName = { [Port in PortName]: `${Port}.${keyof Store[Port] & string}` }[PortName] | 'close'
