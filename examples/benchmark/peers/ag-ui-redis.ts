import { type Peer } from '../peer.ts'
import { openRedisStore, startRedis } from '../redis-server.ts'
import { agUiWith } from './ag-ui.ts'

/** Our AG-UI plugin with its runs in a Redis of its own, on the load's core. What Redis spends is not the server's and is not counted. */
export const agUiRedisPeer: Peer = agUiWith('ag-ui-redis', async () => await openRedisStore(await startRedis()))
