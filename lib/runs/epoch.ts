import { type RunRecord } from '../stores/index.ts'

/**
 * Epoch of what one ownership of a run tells: each has its own, because it can not know what the one before has told ahead of
 * the store, and stores other events under the same sequences (R1).
 */
export function epochOf ({ epoch }: RunRecord, fence: number): string {
  return fence === 1 ? epoch : `${epoch}-${fence}`
}

/** Whether an epoch is one of the run's ownerships, past or present. */
export function isEpochOf (record: RunRecord, epoch: string): boolean {
  const fence = epoch === record.epoch ? 1 : Number(epoch.slice(record.epoch.length + 1))
  return fence <= record.fence && epoch === epochOf(record, fence)
}
