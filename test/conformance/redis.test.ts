import t from 'tap'
import { storeConformance } from 'fastify-agents/stores/conformance'
import { losing, openRedis } from '../helpers/redis-backend.ts'
import { redisTests } from '../helpers/redis-server.ts'

t.jobs = 1
const test = redisTests(t)

test('Redis', async (t, redis) => {
  await storeConformance(t, { name: 'redis', open: async () => openRedis(redis) })
})

test('Redis behind lost acknowledgements', async (t, redis) => {
  let seed = 0
  await storeConformance(t, { name: 'redis behind lost acknowledgements', open: async () => openRedis(redis, losing(++seed), false) })
})
