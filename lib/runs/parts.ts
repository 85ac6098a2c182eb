import { type EventBus } from '../bus/index.ts'
import { type Store } from '../stores/index.ts'
import { type DriverHost } from './driver-host.ts'
import { type Gates } from './gate.ts'
import { type LeaseKeeper } from './lease.ts'
import { type NodeChannel } from './node-channel.ts'
import { type RunLogger } from './logger.ts'
import { type EngineObserver } from './observer.ts'
import { type RunProtocol } from './protocol.ts'
import { type Shelf } from './shelf.ts'
import { type Slots } from './slots.ts'
import { type StoredBytes } from './stored-bytes.ts'

/** What the parts of one engine share. */
export interface EngineParts {
  /** Every call of it settles within the engine's deadline. */
  readonly store: Store
  readonly bus: EventBus
  readonly logger: RunLogger
  readonly node: string
  readonly leases: LeaseKeeper
  readonly gates: Gates
  /** How other nodes are asked for something. */
  readonly channel: NodeChannel
  readonly shelf: Shelf
  readonly host: DriverHost
  readonly protocols: ReadonlyMap<string, RunProtocol>
  readonly observer: EngineObserver | undefined
  /** Absent: no limit. */
  readonly slots: Slots | undefined
  /** Absent: no limit. */
  readonly storedBytes: StoredBytes | undefined
}
