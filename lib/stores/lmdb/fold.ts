import type { Fold } from '../event-log.ts'
import { PART, partKey } from './keys.ts'
import type { FoundRun, RunTable } from './run-table.ts'

/** A fold as it is stored. */
export interface FoldBytes {
  readonly seq: number
  readonly bytes: Buffer
}

/** Encodes a fold's state. */
export function foldBytes ({ seq, state }: Fold): FoldBytes {
  return { seq, bytes: Buffer.from(state) }
}

/** Keeps the fold unless a later one is there. Within a transaction. */
export function keepFold (runs: RunTable, run: FoundRun, { seq, bytes }: FoldBytes): FoundRun {
  if (seq <= run.meta.foldSeq) return run
  runs.table.put(partKey(run.hash, PART.fold), bytes)
  return runs.setMeta(run, { ...run.meta, foldSeq: seq, foldBytes: bytes.length })
}

export function foldOf (runs: RunTable, { hash, meta }: FoundRun): Fold | undefined {
  if (meta.foldSeq < 0) return undefined
  return { seq: meta.foldSeq, state: (runs.table.get(partKey(hash, PART.fold)) as Buffer).toString() } // written with its sequence
}
