import { once } from 'node:events'
import t from 'tap'
import { replyLeft, SseHub } from '../../../lib/sse/index.ts'
import { connect } from '../../helpers/sse-client.ts'
import { deferred, serve, streams, type TestReply } from '../../helpers/sse-server.ts'
import { request } from 'node:http'

t.test('a client that leaves before its answer is noticed', async (t) => {
  const came = deferred<TestReply>()
  const { port } = await serve(t, (reply) => { came.resolve(reply) })
  const client = request({ port, host: '127.0.0.1', agent: false })
  client.on('error', () => {})
  client.end()
  const reply = await came.promise
  const { left, stop } = replyLeft(reply)
  client.destroy()
  await left
  stop()
  t.equal(reply.raw.listenerCount('close'), 0)
  await replyLeft(reply).left
})

t.test('a client that was answered has not left', async (t) => {
  const came = deferred<TestReply>()
  const { port } = await serve(t, (reply) => { came.resolve(reply) })
  const response = connect('GET', '/', { port })
  const reply = await came.promise
  let hasLeft = false
  const watch = replyLeft(reply)
  watch.left.then(() => { hasLeft = true })
  const closed = once(reply.raw, 'close')
  reply.raw.end('{}')
  await (await response).text()
  await closed
  t.equal(hasLeft, false)
})

t.test('a hub says farewell in its own words', async (t) => {
  const { port, next, hub } = await streams(t, new SseHub({ farewell: (id, why) => `: ${why} ${String(id)}\n\n` }))
  await using client = await connect('GET', '/', { port })
  await next()
  await hub.close()
  t.equal(await client.text(), ': closed undefined\n\n')
})
