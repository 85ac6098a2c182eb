import type { LeaseRequest } from '../leases.ts'
import { type Expected, isEnded, type NewRun, type RunPatch, type RunRecord } from '../run-store.ts'
import { frozenJson } from './frozen-json.ts'

/** A record as it stands in a store, with the `op` of its last change. */
export interface KeptRecord {
  readonly record: RunRecord
  readonly lastOp: string | undefined
}

/** The first record of a run, owned by who asked for it. */
export function newRecord (init: NewRun, lease: LeaseRequest, now: number): RunRecord {
  return frozenJson({
    ...init, version: 1, fence: 1, node: lease.node, lastSeq: 0, firstSeqByFence: [[1, 1]] as const, updatedAt: now
  })
}

/** Whether this very change was made already and only its acknowledgement was lost. */
export function isRetry ({ record, lastOp }: KeptRecord, expected: Expected): boolean {
  return expected.op !== undefined && lastOp === expected.op && record.version === expected.version + 1
}

/** Whether the record is no longer what the caller saw, or has ended and would end differently. */
export function isStale (record: RunRecord, expected: Expected, patch: RunPatch): boolean {
  if (record.version !== expected.version) return true
  if (expected.fence !== undefined && record.fence !== expected.fence) return true
  return isEnded(record.state) && ('state' in patch || 'end' in patch || 'endedAt' in patch)
}

/** The patch with its own copies of the values; a field to remove stays named. */
export function frozenPatch (patch: RunPatch): Partial<RunRecord> {
  const copy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(patch)) copy[name] = value === undefined ? undefined : frozenJson(value)
  return copy as Partial<RunRecord> // the patch's fields with values of the same type
}

/** The record with a change made, one version on. */
export function changed (record: RunRecord, change: Partial<RunRecord>, now: number): RunRecord {
  const merged: Record<string, unknown> = { ...record, ...change, version: record.version + 1, updatedAt: now }
  for (const name of Object.keys(change)) if (merged[name] === undefined) delete merged[name]
  return Object.freeze(merged) as unknown as RunRecord // a record with fields replaced by their own type
}

/** Whether a change ends the lease in the same step. */
export function endsLease ({ state }: Partial<RunRecord>): boolean {
  return state !== undefined && state !== 'pending' && state !== 'running'
}

/** The change that gives a run to a new owner, whose numbering begins after `last`. */
export function raised (record: RunRecord, node: string, last: number): Partial<RunRecord> {
  const fence = record.fence + 1
  // An ownership that appended nothing needs no pair: no sequence of it is to be found.
  const pairs = record.firstSeqByFence.filter(([, firstSeq]) => firstSeq <= last)
  return { fence, node, lastSeq: last, firstSeqByFence: Object.freeze([...pairs, Object.freeze([fence, last + 1] as const)]) }
}

/** Where the current ownership began to number. */
export function ownFirstOf (record: RunRecord): number {
  const [, ownFirst] = record.firstSeqByFence.at(-1) as readonly [number, number] // every ownership has its pair
  return ownFirst
}
