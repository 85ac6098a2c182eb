import { type Topic } from '../bus/index.ts'
import { type RunRecord, type Store } from '../stores/index.ts'
import { type Burst } from './burst.ts'
import { type Driver } from './driver.ts'
import { type Following } from './following.ts'
import { type Gates } from './gate.ts'
import { type LeaseKeeper } from './lease.ts'

/** What drivers share with their engine. */
export interface DriverHost {
  readonly store: Store
  readonly burst: Burst
  readonly gates: Gates
  readonly leases: LeaseKeeper
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  /** The run, once it waits, ends with this node (R14). */
  bindToNode (record: RunRecord): Promise<void>
  /** It depends on this node no longer. */
  unbindFromNode (record: RunRecord): Promise<void>
  /** Keeps up to date what other nodes may go on with. */
  readonly following: Following
  /** The other nodes that hold subscribers of the run (R18), as the store knows. Must not reject. */
  remoteReaders (record: RunRecord): Promise<readonly string[]>
  /** Has whoever follows the run on other nodes look at its record. */
  announce (record: RunRecord): void
  /** The run has stopped executing: it waits, has ended, or was taken away. */
  onIdle (driver: Driver, isClosed: boolean): void
  /** The topic holds what the store never will: end its readers, and forget it. */
  discard (topic: Topic): void
}
