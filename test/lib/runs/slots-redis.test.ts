import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { redisStore } from '../../../lib/stores/redis/index.ts'
import { makeEngine, runOf } from '../../helpers/run-engine.ts'
import { redisTests, type TestRedis } from '../../helpers/redis-server.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const test = redisTests(t)
const LIMIT = { code: 'AGT_ERR_RUN_LIMIT' }

/** Two nodes on one Redis, each with a connection of its own. */
function nodes (t: Test, redis: TestRedis, limits: { readonly maxRuns?: number, readonly maxStoredBytes?: number }) {
  const prefix = `${randomUUID()}:`
  const make = () => {
    const client = redis.client()
    const store = redisStore({ client, prefix })
    const made = makeEngine(t, { store, limits })
    t.teardown(async () => {
      await made.engine.close({ timeoutMs: 500 })
      await store.close()
      redis.drop(client)
    })
    return made
  }
  return [make(), make()] as const
}

test('nodes that share a Redis share their owners\' slots, and simultaneous starts take no more than there are', async (t, redis) => {
  const [a, b] = nodes(t, redis, { maxRuns: 3 })
  const agent = new ScriptedAgent()
  const start = (index: number, owner = { id: 'ann' }) => (index % 2 === 0 ? a : b).engine.start(specOf(agent, { owner, session: `s${index}`, clientId: `r${index}` }))
  const results = await Promise.allSettled(Array.from({ length: 12 }, (_, index) => start(index)))
  const started = results.flatMap((result) => result.status === 'fulfilled' ? [runOf(result.value)] : [])
  t.equal(started.length, 3)
  t.same(new Set(results.flatMap((result) => result.status === 'rejected' ? [(result.reason as { code: string }).code] : [])), new Set([LIMIT.code]))
  t.equal((await start(20, { id: 'bob' })).kind, 'started')
  const [first] = started
  if (first === undefined) return
  await Promise.all([a, b].map(({ engine }) => engine.stop(first)))
  t.equal((await start(21)).kind, 'started', 'one that has ended makes room on the other node')
  await t.rejects(start(22), LIMIT)
})

test('what is stored in a Redis is counted by every node', async (t, redis) => {
  const [a, b] = nodes(t, redis, { maxStoredBytes: 3_000 })
  const agent = new ScriptedAgent()
  const start = (engine: typeof a, name: string) => engine.engine.start(specOf(agent, { session: name, clientId: name, stored: 'x'.repeat(2_000) }))
  const run = runOf(await start(a, 'a'));
  (await agent.called()).finish()
  await run.ended
  const kept = await b.store.runs.get(run.record.key)
  t.ok((kept?.bytes ?? 0) > 2_000, `${kept?.bytes}`)
  await t.rejects(start(b, 'b'), { code: 'AGT_ERR_RUN_STORAGE_LIMIT' })
})
