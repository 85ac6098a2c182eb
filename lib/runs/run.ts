import { type Topic } from '../bus/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { type ConnectOptions, type Connection } from './disconnect.ts'
import { type Snapshot } from './protocol.ts'

/**
 * A run as this node sees it: executed here, or read from the store. One that another node executes is followed while somebody is
 * connected to it, and brought up to date by each look-up besides. Made by the engine only.
 */
export interface Run {
  /** The record as last known here. */
  readonly record: RunRecord
  /** The run's log in memory; attach readers to it. */
  readonly topic: Topic
  /**
   * Resolves when the log is closed: with the terminal record, or, where the protocol resumes in a new run, with the waiting one.
   * Never rejects.
   */
  readonly ended: Promise<RunRecord>
  /** Resolves with the record as soon as the run waits or is over; at once if it does already. Where another node executes it: while connected. Never rejects. */
  settled (): Promise<RunRecord>
  /** Counts somebody who reads the run (R18). Close it when the reader leaves, on every path. */
  connect (options?: ConnectOptions): Connection
  /** Where a reader without a usable cursor starts (R12); `undefined` when the protocol has no fold. */
  snapshot (): Snapshot | undefined
}
