import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { type AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import t from 'tap'
import { StreamLimit } from '../../../plugins/agents/stream-limit.ts'

const owner = { id: 'ann' }

/** A route that is counted, and left open. */
async function counted (app: FastifyInstance, limit: StreamLimit): Promise<number> {
  app.get('/', (request, reply) => {
    if (request.headers['x-reset'] !== undefined) (reply.raw as unknown as { stream: { close (code: number): void } }).stream.close(8) // by a client, whose reset was read but not told yet
    limit.take(owner, reply)
    reply.hijack()
    reply.raw.writeHead(200)
    reply.raw.write('open')
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port // it listens on TCP
}

t.test('over HTTP/2 a stream counts until it is closed, and one that was reset before it was counted not at all', async (t) => {
  const app = Fastify({ http2: true }) as unknown as FastifyInstance
  const port = await counted(app, new StreamLimit(1))
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  t.teardown(async () => {
    session.destroy()
    await app.close()
  })
  const open = async (headers = {}) => {
    const stream = session.request({ ':path': '/', ...headers })
    stream.on('error', () => {}).resume()
    const [answer] = await Promise.race([once(stream, 'response'), once(stream, 'close').then(() => [{ ':status': 0 }])]) as [{ ':status': number }]
    return { stream, status: answer[':status'] }
  }
  for (let i = 0; i < 3; i++) t.equal((await open({ 'x-reset': '1' })).status, 0)
  const first = await open()
  t.equal(first.status, 200)
  t.equal((await open()).status, 429)
  const closed = once(first.stream, 'close')
  first.stream.close(8)
  await closed
  let again = await open()
  // The server hears of the end a moment after its client.
  while (again.status === 429) again = await open()
  t.equal(again.status, 200)
  again.stream.close(8)
})

t.test('a reply that is closed already is not counted', (t) => {
  const limit = new StreamLimit(1)
  let listeners = 0
  const reply = (closed: boolean): FastifyReply => ({ raw: { closed, once: () => { listeners++ } } }) as unknown as FastifyReply
  limit.take(owner, reply(true))
  limit.take(owner, reply(true))
  limit.take(owner, reply(false))
  t.equal(listeners, 1)
  t.throws(() => { limit.take(owner, reply(false)) }, { code: 'AGT_ERR_STREAM_LIMIT', statusCode: 429 })
  limit.take({ id: 'bob' }, reply(false))
  t.end()
})
