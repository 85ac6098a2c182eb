import { readFile } from 'node:fs/promises'
import t from 'tap'
import { storeConformance } from 'fastify-agents/stores/conformance'
import { losing, openRedis } from '../helpers/redis-backend.ts'
import { redisTests } from '../helpers/redis-server.ts'

t.jobs = 1

/** Commands that ioredis needs for itself. */
const CLIENT = ['subscribe', 'unsubscribe', 'info', 'client', 'ping', 'auth']

/** The commands that the README lists. */
async function documented (): Promise<string[]> {
  const text = await readFile(new URL('../../lib/stores/redis/README.md', import.meta.url), 'utf8')
  const block = /## Commands[^]*?```\n([^]*?)```/.exec(text)?.[1] ?? ''
  return block.trim().split(/\s+/).map((name) => name.toLowerCase())
}

redisTests(t, { settings: [] })('Redis, for a user who may use nothing but the documented commands', async (t, redis) => {
  const commands = await documented()
  t.ok(commands.length > 20)
  t.notOk(commands.some((name) => ['keys', 'scan', 'eval_ro', 'function'].includes(name)))
  await redis.admin.acl('SETUSER', 'store', 'on', '>secret', '~*', '&*', '-@all', ...[...commands, ...CLIENT].map((name) => `+${name}`))
  await storeConformance(t, { name: 'redis', open: async () => openRedis(redis, { client: { username: 'store', password: 'secret' } }) })
  const used = String(await redis.admin.info('commandstats'))
  t.same(commands.filter((name) => !used.includes(`cmdstat_${name}:`)), [], 'and each of them is used')
})

redisTests(t)('Redis behind lost acknowledgements', async (t, redis) => {
  let seed = 0
  await storeConformance(t, { name: 'redis behind lost acknowledgements', open: async () => openRedis(redis, { wrap: losing(++seed), inOrder: false }) })
})
