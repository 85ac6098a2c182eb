import t, { type Test } from 'tap'
import { LineChild } from '../helpers/line-child.ts'
import { redisTests } from '../helpers/redis-server.ts'
import { connect, type ReceivedFrame } from '../helpers/sse-client.ts'

const script = new URL('../../examples/server.ts', import.meta.url)

/** The example as a user starts it, on a Redis. */
async function start (t: Test, url: string): Promise<{ readonly server: LineChild, readonly port: number }> {
  const server = new LineChild(t, script, [], { PORT: '0', REDIS_URL: url, LOG_LEVEL: 'silent' })
  const line = await server.line()
  return { server, port: Number(/:(\d+)$/.exec(line)?.[1]) }
}

const dataOf = (frames: readonly ReceivedFrame[]): unknown[] => frames.flatMap(({ data }) => data === undefined ? [] : [JSON.parse(data)])

redisTests(t, { settings: [] })('with REDIS_URL, two servers are one service', async (t, redis) => {
  const [one, two] = await Promise.all([start(t, redis.url), start(t, redis.url)])
  const body = { threadId: 'sums', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'What is 6*7?' }] }
  const told = await (await connect('POST', '/agui/run', { port: one.port, body })).rest()
  const half = Math.floor(told.length / 2)
  const headers = { 'last-event-id': `${told[half - 1]?.id}` }
  const rest = await (await connect('POST', '/agui/connect', { port: two.port, body: { threadId: 'sums' }, headers })).rest()
  t.same(dataOf(rest), dataOf(told.slice(half)))
  await connect('POST', '/tasks', { port: one.port, body: { task_id: 'sum', agent_id: 'calculator', input: 'What is 2^10?' } })
  const waited = await (await connect('GET', '/tasks/sum/wait?timeout_seconds=20', { port: two.port })).json()
  t.match(waited, { task_id: 'sum', status: 'success' })
  one.server.process.kill('SIGTERM')
  two.server.process.kill('SIGTERM')
  t.same([await one.server.line(), await two.server.line()], ['', ''], 'and they end when they are told to')
})

t.test('where no Redis answers, the server says so in one sentence', async (t) => {
  const server = new LineChild(t, script, [], { PORT: '0', REDIS_URL: 'redis://127.0.0.1:1', LOG_LEVEL: 'silent' })
  t.equal(await server.line(), '', 'it never listens')
  await server.kill()
  t.equal(server.process.exitCode, 1)
})
