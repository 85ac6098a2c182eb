import t from 'tap'
import { storeConformance } from 'fastify-agents/stores/conformance'
import { openRedis } from '../helpers/redis-backend.ts'
import { redisTests } from '../helpers/redis-server.ts'

redisTests(t, { isCluster: true })('Redis in cluster mode', async (t, redis) => {
  await storeConformance(t, { name: 'redis cluster', open: async () => openRedis(redis) })
})
