import { readFunction, readInteger, readMs } from '../../options.ts'

/** Limits of a memory store. Each says what happens when it is reached. */
export interface MemoryStoreOptions {
  /** Runs kept. When reached, the run that ended longest ago is dropped; when none has ended, `create` rejects with `AGT_ERR_STORE_FULL`. @default 10000 */
  readonly maxRuns?: number
  /** Characters of payload (and 64 an event) kept of one run's log, whatever its own limits say. The oldest appends are dropped. @default 16777216 */
  readonly maxLogBytes?: number
  /** The same for all logs together. Runs that ended longest ago are dropped; then the appending run keeps its newest append only. @default 268435456 */
  readonly maxTotalLogBytes?: number
  /** Milliseconds an ended run is kept whose record has no `expiresAt`. @default 600000 */
  readonly endedTtlMs?: number
  /** Interrupts kept, of all runs. When reached, `commit` rejects with `AGT_ERR_STORE_FULL` and writes nothing. @default 100000 */
  readonly maxInterrupts?: number
  /** Tickets in all gates. When reached, `enter` rejects with `AGT_ERR_STORE_FULL`. @default 100000 */
  readonly maxTickets?: number
  /** Small values kept. When reached, the one written longest ago is dropped. @default 100000 */
  readonly maxKv?: number
  /** Milliseconds between sweeps of what has run out; it is unreadable at once, swept later. Minimum 10. @default 30000 */
  readonly sweepMs?: number
  /** Milliseconds since 1970: the store's clock. @default Date.now */
  readonly now?: () => number
}

/** Every option with its value. */
export type ResolvedMemoryOptions = Required<MemoryStoreOptions>

/** @throws AGT_ERR_OPTION_INVALID for a value that can not be used */
export function resolveMemoryOptions (options: MemoryStoreOptions = {}): ResolvedMemoryOptions {
  return {
    maxRuns: readInteger('maxRuns', options.maxRuns, { default: 10_000, min: 1 }),
    maxLogBytes: readInteger('maxLogBytes', options.maxLogBytes, { default: 16_777_216, min: 1 }),
    maxTotalLogBytes: readInteger('maxTotalLogBytes', options.maxTotalLogBytes, { default: 268_435_456, min: 1 }),
    endedTtlMs: readInteger('endedTtlMs', options.endedTtlMs, { default: 600_000 }),
    maxInterrupts: readInteger('maxInterrupts', options.maxInterrupts, { default: 100_000, min: 1 }),
    maxTickets: readInteger('maxTickets', options.maxTickets, { default: 100_000, min: 1 }),
    maxKv: readInteger('maxKv', options.maxKv, { default: 100_000, min: 1 }),
    sweepMs: readMs('sweepMs', options.sweepMs, { default: 30_000, min: 10 }),
    now: readFunction('now', options.now) ?? Date.now
  }
}
