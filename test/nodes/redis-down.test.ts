import t from 'tap'
import { nodesTests, numbersOf, range, restOf, saidIn, untilSaid } from './nodes.ts'

const test = nodesTests(t, { settings: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })

test('a run goes on over a restart of Redis, and nothing is lost or told twice', async (t, { a, b, redis }) => {
  const own = await a.run('restart', 'count 150 20')
  const told = await untilSaid(own, '20 ')
  const there = await b.join('restart')
  const before = await untilSaid(there, '15 ')
  await redis.kill()
  await redis.start()
  const [rest, seen] = await Promise.all([restOf(own), restOf(there)])
  const whole = [...told, ...rest]
  t.match(whole.at(-1), { type: 'RUN_FINISHED' })
  t.equal(saidIn(whole), `${range(1, 150).join(' ')} `)
  t.same(numbersOf(whole), range(1, whole.length))
  t.same([...before, ...seen], whole)
  t.same(await restOf(await b.join('restart', whole[4]?.id)), whole.slice(5), 'the log is whole again')
})

test('what Redis had not written when it failed is written again by the owner of the run', async (t, { a, b, redis }) => {
  const own = await a.run('tail', 'count 150 20')
  const told = await untilSaid(own, '10 ')
  await redis.keepDisk()
  const more = await untilSaid(own, '30 ')
  await redis.restartAsKept()
  const whole = [...told, ...more, ...await restOf(own)]
  t.match(whole.at(-1), { type: 'RUN_FINISHED' })
  t.same(numbersOf(whole), range(1, whole.length))
  const all = await restOf(await b.join('tail', whole[0]?.id))
  t.same(all, whole.slice(1))
})

test('without Redis every call ends, and so does a server that is told to close', async (t, { a, b, redis }) => {
  const own = await a.run('gone', 'count 10000 20')
  await untilSaid(own, '3 ')
  const there = await b.join('gone')
  await redis.kill()
  const asked: [string, string, object?][] = [
    ['POST', '/agui/run', { threadId: 'new', runId: 'new', messages: [{ id: 'm', role: 'user', content: 'count 1 1' }] }],
    ['POST', '/agui/connect', { threadId: 'gone' }],
    ['POST', '/agui/stop/gone'],
    ['POST', '/tasks', { task_id: 'new', agent_id: 'worker', input: 'count 1 1' }],
    ['GET', '/tasks'],
    ['GET', '/tasks/old'],
    ['GET', '/tasks/old/wait?timeout_seconds=1'],
    ['GET', '/tasks/old/events'],
    ['POST', '/tasks/old/cancel'],
    ['DELETE', '/tasks/old']
  ]
  const answers = await Promise.all(asked.map(async ([method, path, body]) => ({ path, status: (await b.ask(method, path, body)).status })))
  t.same(answers, asked.map(([, path]) => ({ path, status: 503 })))
  const [mine, seen] = await Promise.all([restOf(own), restOf(there)])
  t.match(mine.at(-1), { type: 'RUN_ERROR', code: 'STORE_UNAVAILABLE' }, 'the caller is told')
  t.notMatch(seen.at(-1) ?? {}, { type: /RUN_(ERROR|FINISHED)/ }, 'nobody else is told what is not stored')
  t.equal(await a.terminate(), 'closed')
  t.equal(await b.terminate(), 'closed')
  await redis.start()
}, { leaseMs: 10_000 })
