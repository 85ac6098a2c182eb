import { type RunRecord } from '../stores/index.ts'

const UNSTORED = '-unstored'

/**
 * Epoch of what one ownership of a run tells: each has its own, because it can not know what the one before has told ahead of
 * the store, and stores other events under the same sequences (R1).
 */
export function epochOf ({ epoch }: RunRecord, fence: number): string {
  return fence === 1 ? epoch : `${epoch}-${fence}`
}

/** Epoch of what an ownership tells in place of what it could not store, or does not know to be stored: no log ever holds it. */
export function unstoredEpochOf (record: RunRecord): string {
  return epochOf(record, record.fence) + UNSTORED
}

/** Whether an epoch is one of the run's ownerships, past or present. */
export function isEpochOf (record: RunRecord, epoch: string): boolean {
  const own = epoch.endsWith(UNSTORED) ? epoch.slice(0, -UNSTORED.length) : epoch
  const fence = own === record.epoch ? 1 : Number(own.slice(record.epoch.length + 1))
  return fence <= record.fence && own === epochOf(record, fence)
}
