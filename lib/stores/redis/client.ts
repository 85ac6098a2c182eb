import type { Cluster, Redis } from 'ioredis'
import { InvalidOptionError } from '../../options.ts'

/** A connection of ioredis 5: one server (also by Sentinel), or a cluster. It stays its maker's. */
export type RedisClient = Redis | Cluster

/** Whether the client is that of a cluster. */
export function isCluster (client: RedisClient): client is Cluster {
  return client.isCluster
}

/**
 * A client that the store can work with. What it can not work with is refused here and not found out later.
 * @throws AGT_ERR_OPTION_INVALID
 */
export function readClient (client: unknown): RedisClient {
  if (!isClient(client)) throw refused('this value', 'it is an ioredis client, `new Redis(...)` or `new Cluster(...)`')
  const options = client.options as { readonly keyPrefix?: string, readonly scaleReads?: unknown, readonly readOnly?: boolean } // members of one or the other
  if (client.status === 'end') throw refused('one that was closed', 'it is connected, connects, or is to connect (`lazyConnect`)')
  if (!isCluster(client) && client.mode !== 'normal') throw refused('one that subscribes or monitors', 'it is free for all commands')
  if (options.keyPrefix !== undefined && options.keyPrefix !== '') throw refused('one with `keyPrefix`', 'use the option `prefix` of the store')
  if (isCluster(client) && options.scaleReads !== undefined && options.scaleReads !== 'master') {
    throw refused('one with `scaleReads`', 'a replica may not know yet what the store has been told; leave it at `master`')
  }
  if (options.readOnly === true) throw refused('one with `readOnly`', 'the store writes')
  return client
}

function isClient (value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null) return false
  const { call, duplicate, on, off, options } = value as Record<string, unknown> // members of unknown kind
  return [call, duplicate, on, off].every((member) => typeof member === 'function') && typeof options === 'object' && options !== null
}

function refused (what: string, wanted: string): Error {
  return new InvalidOptionError('client', what, wanted)
}
