import { once } from 'node:events'
import { connect as connectHttp2, type IncomingHttpHeaders } from 'node:http2'
import { type AddressInfo } from 'node:net'
import compress from '@fastify/compress'
import cors from '@fastify/cors'
import Fastify from 'fastify'
import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { SseHub, sseView } from '../../../lib/sse/index.ts'
import { connect } from '../../helpers/sse-client.ts'

const view = sseView()

async function listen (t: { teardown (fn: () => unknown): unknown }, app: { listen (options: { port: number, host: string }): Promise<string>, close (): Promise<unknown>, server: { address (): unknown } }): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  return (app.server.address() as AddressInfo).port
}

t.test('headers of hooks and of @fastify/cors reach the stream, and nothing compresses or buffers it', async (t) => {
  const app = Fastify()
  const hub = new SseHub()
  const topic = new EventBus().topic('a')
  await app.register(cors, { origin: 'https://a.example', credentials: true, exposedHeaders: ['x-run'] })
  await app.register(compress, { global: true, threshold: 0 })
  app.addHook('onRequest', async (request, reply) => { reply.header('x-run', 'r1').header('set-cookie', 'a=1').header('set-cookie', 'b=2') })
  app.addHook('preClose', async () => hub.close())
  app.get('/', (request, reply) => {
    hub.open(reply.code(201)).follow(topic, { view })
    return reply
  })
  app.get('/json', async () => ({ text: 'x'.repeat(2000) }))
  const port = await listen(t, app)
  const headers = { 'accept-encoding': 'gzip, deflate, br', origin: 'https://a.example' }
  await using json = await connect('GET', '/json', { port, headers })
  t.ok(json.headers['content-encoding'], 'other answers are compressed')
  await using client = await connect('GET', '/', { port, headers })
  t.equal(client.status, 201)
  t.equal(client.headers['content-encoding'], undefined)
  t.equal(client.headers['access-control-allow-origin'], 'https://a.example')
  t.equal(client.headers['access-control-allow-credentials'], 'true')
  t.equal(client.headers['access-control-expose-headers'], 'x-run')
  t.same(client.headers['set-cookie'], ['a=1', 'b=2'])
  t.equal(client.headers['x-run'], 'r1')
  for (let n = 1; n <= 3; n++) {
    topic.append({ data: String(n) })
    t.equal((await client.next()).data, String(n), 'each frame by itself')
  }
  topic.end()
  t.equal(await client.text(), `id: ${topic.epoch}.1\ndata: 1\n\nid: ${topic.epoch}.2\ndata: 2\n\nid: ${topic.epoch}.3\ndata: 3\n\n`)
})

t.test('app.close() resolves with idle, busy and stalled streams, each ended with a cursor, over kept-alive connections too', async (t) => {
  const app = Fastify({ keepAliveTimeout: 60_000 })
  const hub = new SseHub({ closeTimeoutMs: 1000 })
  const topic = new EventBus({ replay: { maxBytes: 100e6 } }).topic('a', { epoch: 'e1' })
  app.addHook('preClose', async () => hub.close())
  app.get('/', (request, reply) => {
    hub.open(reply).follow(topic, { view })
  })
  const port = await listen(t, app)
  const clients = []
  for (let n = 0; n < 10; n++) clients.push(await connect('GET', '/', { port, headers: { connection: 'keep-alive' } }))
  topic.append({ data: '1' })
  for (const client of clients) await client.next()
  const stalled = await connect('GET', '/', { port, headers: { connection: 'keep-alive' } })
  const big = await connect('GET', '/', { port })
  topic.append({ data: 'x'.repeat(20_000_000) })
  await app.close()
  for (const client of clients) await client.destroy()
  t.equal(stalled.complete, false)
  await stalled.destroy()
  await big.destroy()
  t.equal(hub.size, 0)
})

t.test('clients that read get the cursor when the app closes', async (t) => {
  const app = Fastify({ keepAliveTimeout: 60_000 })
  const hub = new SseHub()
  const topic = new EventBus().topic('a', { epoch: 'e1' })
  app.addHook('preClose', async () => hub.close())
  app.get('/', async (request, reply) => { hub.open(reply).follow(topic, { view }) })
  const port = await listen(t, app)
  const clients = []
  for (let n = 0; n < 20; n++) clients.push(await connect('GET', '/', { port, headers: { connection: 'keep-alive' } }))
  topic.append({ data: '1' })
  for (const client of clients) await client.next()
  const closed = app.close()
  for (const client of clients) {
    const [farewell] = await client.rest()
    t.match(farewell?.raw, /^id: e1\.1\nretry: \d+\n\n$/)
    t.equal(client.complete, true)
  }
  await closed
})

t.test('inject() reads a stream like any other answer', async (t) => {
  const app = Fastify()
  const hub = new SseHub()
  const topic = new EventBus().topic('a', { epoch: 'e1' })
  topic.append({ data: '1' })
  topic.end()
  app.get('/', async (request, reply) => { hub.open(reply).follow(topic, { view }) })
  const response = await app.inject('/')
  t.equal(response.body, 'id: e1.1\ndata: 1\n\n')
  const head = await app.inject({ method: 'HEAD', url: '/' })
  t.equal(head.statusCode, 200)
  t.equal(head.body, '')
  t.equal(hub.size, 0)
  await app.close()
})

t.test('over HTTP/2 no header of the connection is sent, and streams, stalls and disconnects work', async (t) => {
  const app = Fastify({ http2: true })
  const hub = new SseHub()
  const topic = new EventBus({ replay: { maxBytes: 100e6 } }).topic('a', { epoch: 'e1' })
  const ends: string[] = []
  app.addHook('onRequest', async (request, reply) => { reply.header('connection', 'keep-alive').header('x-run', 'r1').header('set-cookie', ['a=1', 'b=2']) })
  app.addHook('preClose', async () => hub.close())
  app.get('/', async (request, reply) => {
    if (request.headers['x-reset'] !== undefined) reply.raw.stream.close(8) // as by a client, whose reset was read but not told yet
    const response = hub.open(reply)
    response.follow(topic, { view })
    response.closed.then((end) => ends.push(end), t.fail)
  })
  const port = await listen(t, app)
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const open = async (method = 'GET'): Promise<{ stream: ReturnType<typeof session.request>, headers: IncomingHttpHeaders }> => {
    const stream = session.request({ ':path': '/', ':method': method })
    stream.on('error', () => {})
    const [headers] = await once(stream, 'response')
    return { stream, headers }
  }
  const { stream, headers } = await open()
  const { date, ...rest } = headers
  t.strictSame(Object.fromEntries(Object.entries(rest)), {
    ':status': 200,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-run': 'r1',
    'set-cookie': ['a=1', 'b=2']
  })
  let farewell = ''
  stream.setEncoding('utf8').on('data', (text: string) => { farewell += text })
  topic.append({ data: '1' })
  t.equal((await once(stream, 'data'))[0], 'id: e1.1\ndata: 1\n\n')

  const head = await open('HEAD')
  head.stream.resume()
  await once(head.stream, 'close')
  t.equal(head.headers['content-type'], 'text/event-stream; charset=utf-8')

  const gone = await open()
  t.equal(topic.readers, 2)
  gone.stream.close(8)
  await once(gone.stream, 'close')
  while (topic.readers > 1) await new Promise((resolve) => { setImmediate(resolve) })

  const reset = session.request({ ':path': '/', 'x-reset': '1' })
  reset.on('error', () => {})
  await once(reset, 'close')
  t.equal(ends.pop(), 'disconnected')
  t.equal(topic.readers, 1)

  const stalled = await open()
  topic.append({ data: 'x'.repeat(1_000_000) })
  let received = ''
  for await (const chunk of stalled.stream.setEncoding('utf8')) {
    received += String(chunk)
    if (received.endsWith('x\n\n')) break
  }
  t.equal(received, `id: e1.1\ndata: 1\n\nid: e1.2\ndata: ${'x'.repeat(1_000_000)}\n\n`)

  stalled.stream.close(8)
  while (topic.readers > 1) await new Promise((resolve) => { setImmediate(resolve) })

  const ended = once(stream, 'end')
  const closed = app.close()
  await ended
  session.close()
  await closed
  t.match(farewell, /^id: e1\.1\ndata: 1\n\nid: e1\.2\ndata: x+\n\nid: e1\.2\nretry: \d+\n\n$/)
  t.same(ends.sort(), ['closed', 'disconnected', 'disconnected', 'ended'])
})
