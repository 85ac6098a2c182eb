import { InvalidOptionError, readChoice, readFunction, readInteger, readMs } from '../../options.ts'

/** When an operation of an LMDB store counts as done. */
export type LmdbSync = 'system' | 'disk'

/** Options of an LMDB store. */
export interface LmdbStoreOptions {
  /** The data directory; made where it is absent. One store of one process owns it at a time. */
  readonly path: string
  /**
   * When an operation counts as done. `system`: the operating system has it, so that it survives whatever happens to this process; it
   * reaches the disk right behind, and a power failure takes the last moments, as a whole. `disk`: the disk has it.
   * @default 'system'
   */
  readonly sync?: LmdbSync
  /**
   * Bytes of records, logs and values kept; the file is larger by about a third. When reached, the runs that ended longest ago are dropped;
   * when none has ended, `create` and `append` reject with `AGT_ERR_STORE_FULL`. @default 8589934592
   */
  readonly maxBytes?: number
  /** Bytes kept of one run's log, whatever its own limits say. The oldest appends are dropped. @default 67108864 */
  readonly maxLogBytes?: number
  /** Milliseconds an ended run is kept whose record has no `expiresAt`. @default 604800000 */
  readonly endedTtlMs?: number
  /** Milliseconds between sweeps of what has run out; it is unreadable at once, swept later. Minimum 10. @default 30000 */
  readonly sweepMs?: number
  /** Milliseconds since 1970: the store's clock. @default Date.now */
  readonly now?: () => number
}

/** Every option with its value. */
export type ResolvedLmdbOptions = Required<LmdbStoreOptions>

/** @throws AGT_ERR_OPTION_INVALID for a value that can not be used */
export function resolveLmdbOptions (options: LmdbStoreOptions): ResolvedLmdbOptions {
  const { path } = options
  if (typeof path !== 'string' || path === '') throw new InvalidOptionError('path', JSON.stringify(path) ?? 'undefined', 'it is the path of a directory')
  return {
    path,
    sync: readChoice('sync', options.sync, ['system', 'disk'], 'system'),
    maxBytes: readInteger('maxBytes', options.maxBytes, { default: 8_589_934_592, min: 1 }),
    maxLogBytes: readInteger('maxLogBytes', options.maxLogBytes, { default: 67_108_864, min: 1 }),
    endedTtlMs: readInteger('endedTtlMs', options.endedTtlMs, { default: 604_800_000 }),
    sweepMs: readMs('sweepMs', options.sweepMs, { default: 30_000, min: 10 }),
    now: readFunction('now', options.now) ?? Date.now
  }
}
