import type { Store } from '../store.ts'
import { Connection } from './connection.ts'
import { RedisEventLog } from './event-log.ts'
import { RedisGates } from './gates.ts'
import { IndexSet } from './index-set.ts'
import { RedisInterrupts } from './interrupts.ts'
import { Keys } from './keys.ts'
import { RedisKv } from './kv.ts'
import { RedisLeases } from './leases.ts'
import { RedisNodes } from './nodes.ts'
import { type RedisStoreOptions, resolveRedisOptions } from './options.ts'
import { Owned } from './owned.ts'
import type { RedisParts } from './parts.ts'
import { RedisPresence } from './presence.ts'
import { RedisRunIndex } from './run-index.ts'
import { RedisRuns } from './runs.ts'
import { RedisSignals } from './signals.ts'
import { Subscriber } from './subscriber.ts'

/**
 * A store in Redis 7.0 or later, for many nodes. The client is the caller's and stays open; `close` ends only the connection that the store
 * has made to subscribe, at once and whether Redis is there or not.
 *
 * @throws AGT_ERR_OPTION_INVALID for an option that can not be used
 */
export function redisStore (options: RedisStoreOptions): Store {
  const resolved = resolveRedisOptions(options)
  const { client, prefix, maxPending, skewMs } = resolved
  const connection = new Connection(client, maxPending, skewMs)
  const parts: RedisParts = { connection, keys: new Keys(prefix), owned: new Owned(), indexSet: new IndexSet(connection), options: resolved }
  const subscriber = new Subscriber(client)
  // What fails says so to its caller. Without a listener the client would write it to the console as well.
  const ignore = (): void => {}
  client.on('error', ignore)
  return {
    runs: new RedisRuns(parts),
    log: new RedisEventLog(parts),
    leases: new RedisLeases(parts),
    nodes: new RedisNodes(parts),
    presence: new RedisPresence(parts),
    interrupts: new RedisInterrupts(parts),
    gates: new RedisGates(parts),
    kv: new RedisKv(parts),
    index: new RedisRunIndex(parts),
    signals: new RedisSignals(parts, subscriber),
    close: async () => {
      subscriber.close()
      client.off('error', ignore)
    }
  }
}
