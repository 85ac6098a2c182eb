import type { RunState } from '../run-store.ts'
import type { LogEdge } from '../rules/log.ts'

const STATES = ['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled', 'lost'] as const satisfies readonly RunState[]

const FIELDS = [
  'fence', 'ownFirst', 'last', 'oldest', 'second', 'logBytes', 'endedAt', 'goneAt', 'foldSeq', 'foldBytes', 'recordBytes', 'interruptBytes'
] as const

/**
 * What an append and a sweep have to know of a run, without reading its record: a few numbers, so that an append costs no JSON. It
 * repeats what the record says and is written with it.
 */
export interface RunMeta extends LogEdge {
  readonly state: RunState
  readonly fence: number
  /** Sequence of the oldest event kept. */
  readonly oldest: number
  /** First sequence of the block behind the oldest one; 0 where there is none. */
  readonly second: number
  readonly logBytes: number
  /** When the store saw the run end; Infinity: it has not. */
  readonly endedAt: number
  /** When everything of the run is gone; Infinity: never by itself. */
  readonly goneAt: number
  /** Sequence of the stored fold; -1: there is none. */
  readonly foldSeq: number
  readonly foldBytes: number
  readonly recordBytes: number
  readonly interruptBytes: number
}

/** Of a run that was just created. */
export const NEW_META: RunMeta = {
  state: 'pending',
  fence: 1,
  ownFirst: 1,
  last: 0,
  oldest: 1,
  second: 0,
  logBytes: 0,
  endedAt: Infinity,
  goneAt: Infinity,
  foldSeq: -1,
  foldBytes: 0,
  recordBytes: 0,
  interruptBytes: 0
}

/** Bytes that a run counts for. */
export function sizeOf ({ logBytes, foldBytes, recordBytes, interruptBytes }: RunMeta): number {
  return logBytes + foldBytes + recordBytes + interruptBytes
}

export function encodeMeta (meta: RunMeta): Buffer {
  const bytes = Buffer.allocUnsafe(1 + 8 * FIELDS.length)
  let at = bytes.writeUInt8(STATES.indexOf(meta.state))
  for (const field of FIELDS) at = bytes.writeDoubleLE(meta[field], at)
  return bytes
}

export function decodeMeta (bytes: Buffer): RunMeta {
  const meta: Record<string, unknown> = { state: STATES[bytes.readUInt8()] }
  for (let index = 0; index < FIELDS.length; index++) meta[FIELDS[index] as string] = bytes.readDoubleLE(1 + 8 * index) // within the fields
  return meta as unknown as RunMeta // every field, by the list of them
}
