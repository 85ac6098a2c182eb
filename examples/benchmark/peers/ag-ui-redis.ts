import { Redis } from 'ioredis'
import { redisStore } from '../../../lib/stores/redis/index.ts'
import { type Store } from '../../../lib/stores/index.ts'
import { type Peer } from '../peer.ts'
import { startRedis } from '../redis-server.ts'
import { agUiWith } from './ag-ui.ts'

/** Our AG-UI plugin with its runs in a Redis of its own, on the load's core. What Redis spends is not the server's and is not counted. */
export const agUiRedisPeer: Peer = agUiWith('ag-ui-redis', openStore)

async function openStore (): Promise<Store> {
  const client = new Redis({ host: '127.0.0.1', port: await startRedis(), retryStrategy: () => 20 })
  client.on('error', () => {}) // it tries again until the server listens
  await client.ping()
  return redisStore({ client })
}
