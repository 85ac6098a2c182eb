import type { BlockLog } from './block-log.ts'
import type { Eraser } from './eraser.ts'
import type { ExpiringTable } from './expiring-table.ts'
import type { ResolvedLmdbOptions } from './options.ts'
import type { RunTable } from './run-table.ts'
import type { Space } from './space.ts'
import type { Sweeper } from './sweeper.ts'
import type { Table } from './table.ts'
import type { WriteQueue } from './write-queue.ts'

/** What the ports of one LMDB store share. */
export interface LmdbParts {
  readonly table: Table
  readonly queue: WriteQueue
  readonly runs: RunTable
  readonly log: BlockLog
  readonly eraser: Eraser
  readonly space: Space
  readonly values: ExpiringTable
  readonly sweeper: Sweeper
  readonly options: ResolvedLmdbOptions
}
