import { InvalidOptionError, readFunction, readInteger, readMs } from '../../options.ts'
import { readClient, type RedisClient } from './client.ts'

/** Options of a Redis store. */
export interface RedisStoreOptions {
  /** A connection of ioredis 5, for one server or a cluster. It is never closed by the store, which makes a second one of it to subscribe. */
  readonly client: RedisClient
  /** Every key and channel begins with it: one Redis can serve several applications. 1 to 64 characters without braces. @default 'agt:' */
  readonly prefix?: string
  /** Milliseconds an ended run is kept whose record has no `expiresAt`. @default 600000 */
  readonly endedTtlMs?: number
  /**
   * Milliseconds after which a run is forgotten that nobody writes, renews or ends: the bound of what a crash can leave behind. Waiting
   * runs are kept this long for their answer. Minimum 60000. @default 2592000000
   */
  readonly idleTtlMs?: number
  /** Commands that may wait for Redis. When reached, calls reject with `AGT_ERR_STORE_UNAVAILABLE` at once. @default 20000 */
  readonly maxPending?: number
  /**
   * Milliseconds added to what Redis takes for the time, asked at each call. For tests of what runs out, alone: expiry of keys does not follow it.
   * @internal
   */
  readonly skewMs?: () => number
}

/** Every option with its value. */
export type ResolvedRedisOptions = Required<RedisStoreOptions>

const DAY_MS = 86_400_000

/** @throws AGT_ERR_OPTION_INVALID for a value that can not be used */
export function resolveRedisOptions (options: RedisStoreOptions): ResolvedRedisOptions {
  return {
    client: readClient((options as RedisStoreOptions | undefined)?.client),
    prefix: readPrefix(options.prefix),
    endedTtlMs: readMs('endedTtlMs', options.endedTtlMs, { default: 600_000, min: 1 }),
    idleTtlMs: readInteger('idleTtlMs', options.idleTtlMs, { default: 30 * DAY_MS, min: 60_000, max: 3_650 * DAY_MS }),
    maxPending: readInteger('maxPending', options.maxPending, { default: 20_000, min: 1 }),
    skewMs: readFunction('skewMs', options.skewMs) ?? noSkew
  }
}

function readPrefix (prefix: unknown): string {
  if (prefix === undefined) return 'agt:'
  if (typeof prefix !== 'string' || !/^[^{}]{1,64}$/.test(prefix)) {
    throw new InvalidOptionError('prefix', JSON.stringify(prefix) ?? 'this value', 'it is a text of 1 to 64 characters without braces')
  }
  return prefix
}

function noSkew (): number {
  return 0
}
