import type { Store } from '../store.ts'
import { BlockLog } from './block-log.ts'
import { Eraser } from './eraser.ts'
import { LmdbEventLog } from './event-log.ts'
import { ExpiringTable } from './expiring-table.ts'
import { LmdbGates } from './gates.ts'
import { LmdbInterrupts } from './interrupts.ts'
import { LmdbKv } from './kv.ts'
import { LmdbLeases } from './leases.ts'
import { ListTable } from './list-table.ts'
import { LmdbNodes } from './nodes.ts'
import type { ResolvedLmdbOptions } from './options.ts'
import type { LmdbParts } from './parts.ts'
import { LmdbPresence } from './presence.ts'
import { LmdbRunIndex } from './run-index.ts'
import { RunTable } from './run-table.ts'
import { LmdbRuns } from './runs.ts'
import { Space } from './space.ts'
import { Sweeper } from './sweeper.ts'
import type { Table } from './table.ts'
import { Usage } from './usage.ts'
import { WriteQueue } from './write-queue.ts'

/** The ports of a store that live in a table. */
export interface TableStore {
  readonly ports: Omit<Store, 'signals' | 'close' | 'isVolatile' | 'isExclusive'>
  readonly sweeper: Sweeper
  /** Finishes what was asked for and takes nothing more; the table stays open. */
  close (): Promise<void>
}

/** A store on an open table. */
export function storeOn (table: Table, options: ResolvedLmdbOptions): TableStore {
  const usage = new Usage(table)
  const queue = new WriteQueue(table, options.sync, { beforeCommit: () => { usage.save() }, afterAbort: () => { usage.reload() } })
  const runs = new RunTable(table, usage, new ListTable(table), options)
  const eraser = new Eraser(runs)
  const sweeper = new Sweeper(table, queue, eraser, options)
  const parts: LmdbParts = {
    table,
    queue,
    runs,
    log: new BlockLog(table, options.maxLogBytes),
    eraser,
    space: new Space(usage, eraser, options.maxBytes),
    values: new ExpiringTable(table, usage),
    sweeper,
    options
  }
  return {
    ports: {
      runs: new LmdbRuns(parts),
      log: new LmdbEventLog(parts),
      leases: new LmdbLeases(parts),
      nodes: new LmdbNodes(parts),
      presence: new LmdbPresence(parts),
      interrupts: new LmdbInterrupts(parts),
      gates: new LmdbGates(parts),
      kv: new LmdbKv(parts),
      index: new LmdbRunIndex(parts)
    },
    sweeper,
    async close () {
      sweeper.close()
      await queue.close()
    }
  }
}
