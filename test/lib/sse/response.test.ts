import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { connect as connectSocket } from 'node:net'
import t from 'tap'
import { SseEndedError, SseHub, type SseResponse } from '../../../lib/sse/index.ts'
import { connect } from '../../helpers/sse-client.ts'
import { deferred, serve, streams } from '../../helpers/sse-server.ts'

t.test('the head goes out at once, before any frame', async (t) => {
  const { port, next } = await streams(t, new SseHub(), { 'access-control-allow-origin': 'https://a.example', 'set-cookie': ['a=1', 'b=2'], vary: 'Origin' })
  await using client = await connect('GET', '/', { port })
  t.equal(client.status, 200)
  const { date, ...headers } = client.headers
  t.same(headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'access-control-allow-origin': 'https://a.example',
    'set-cookie': ['a=1', 'b=2'],
    vary: 'Origin',
    // Node's own two, as on every response of a server with keep-alive.
    connection: 'close',
    'transfer-encoding': 'chunked'
  })
  const { response, reply } = await next()
  t.equal(reply.isHijacked, true)
  t.equal(response.isOpen, true)
  t.equal(response.isHead, false)
  response.end()
  t.same(await client.rest(), [])
})

t.test('what belongs to one connection or to a body of known length is left out, and our own headers win', async (t) => {
  const { port, next } = await streams(t, new SseHub(), {
    connection: 'upgrade',
    'keep-alive': 'timeout=9',
    'proxy-connection': 'x',
    'transfer-encoding': 'gzip',
    upgrade: 'h2c',
    'http2-settings': 'x',
    'content-length': '10',
    'content-encoding': 'gzip',
    'content-type': 'application/json',
    'cache-control': 'max-age=60',
    'x-accel-buffering': 'yes',
    'x-kept': 'yes',
    'x-none': undefined
  })
  await using client = await connect('GET', '/', { port })
  const { date, ...headers } = client.headers
  t.same(headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    'x-kept': 'yes',
    connection: 'close',
    'transfer-encoding': 'chunked'
  })
  const { response } = await next()
  response.end()
})

t.test('headers put on the raw response before are sent as well, ours still winning', async (t) => {
  const hub = new SseHub()
  const { port } = await serve(t, (reply) => {
    reply.raw.setHeader('x-raw', 'yes').setHeader('content-length', '5').setHeader('content-type', 'text/plain')
    hub.open(reply).end()
  })
  await using client = await connect('GET', '/', { port })
  t.equal(client.headers['x-raw'], 'yes')
  t.equal(client.headers['content-length'], undefined)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
})

t.test('frames written are the frames read, and an ended stream is complete', async (t) => {
  const { port, next, hub } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  t.equal(response.write('id: 1\ndata: a\n\n'), true)
  t.equal(response.write(Buffer.from('id: 2\ndata: \u00fc\n\n')), true)
  response.end('id: 3\ndata: c\n\n')
  t.equal(response.isOpen, false)
  t.equal(response.write('id: 4\ndata: d\n\n'), false)
  response.end('id: 5\ndata: e\n\n')
  t.equal(await client.text(), 'id: 1\ndata: a\n\nid: 2\ndata: \u00fc\n\nid: 3\ndata: c\n\n')
  t.equal(await client.closed, 'ended')
  t.equal(await response.closed, 'ended')
  t.equal(await response.closed, 'ended', 'also for who asks afterwards')
  t.equal(response.signal.aborted, false)
  t.equal(hub.size, 0)
})

t.test('a client that goes while the stream idles is seen on the response', async (t) => {
  for (const leave of ['destroy', 'reset'] as const) {
    const { port, next, hub } = await streams(t)
    const client = await connect('GET', '/', { port })
    const { response } = await next()
    const aborted = once(response.signal, 'abort')
    await client[leave]()
    await aborted
    t.match(response.signal.reason, { name: 'AbortError', code: 'AGT_ERR_SSE_ENDED', end: 'disconnected' })
    t.ok(response.signal.reason instanceof SseEndedError)
    t.equal(await response.closed, 'disconnected')
    t.equal(response.isOpen, false)
    t.equal(response.write('data: late\n\n'), false)
    response.end()
    t.equal(hub.size, 0)
  }
})

t.test('a signal asked for after the end has fired already', async (t) => {
  const { port, next } = await streams(t)
  const client = await connect('GET', '/', { port })
  const { response } = await next()
  await client.destroy()
  await response.closed
  t.equal(response.signal.aborted, true)
  t.equal(response.signal.reason.end, 'disconnected')
})

t.test('a client that left before the stream was opened is a disconnect as well', async (t) => {
  const hub = new SseHub()
  const opened = deferred<SseResponse>()
  const { port } = await serve(t, (reply) => {
    reply.raw.once('close', () => setImmediate(() => { opened.resolve(hub.open(reply)) }))
    client.destroy()
  })
  const client = connectSocket(port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const response = await opened.promise
  t.equal(await response.closed, 'disconnected')
  t.equal(response.signal.reason.end, 'disconnected')
  t.equal(hub.size, 0)
})

t.test('a client that stalls and then resets is seen while the writer waits for drain', async (t) => {
  const { port, next } = await streams(t)
  const client = await connect('GET', '/', { port })
  const { response } = await next()
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  while (response.write(chunk));
  t.ok(response.pendingBytes > 0)
  await client.reset()
  t.equal(await response.closed, 'disconnected')
})

t.test('a POST whose body has been read is not a disconnect', async (t) => {
  const hub = new SseHub()
  const read = deferred<SseResponse>()
  const { port } = await serve(t, (reply) => {
    const response = hub.open(reply)
    reply.request.raw.resume().once('close', () => { read.resolve(response) })
  })
  await using client = await connect('POST', '/', { port, body: { a: 'x'.repeat(100_000) } })
  const response = await read.promise
  t.equal(response.signal.aborted, false)
  response.end('data: done\n\n')
  t.equal(await client.text(), 'data: done\n\n')
  t.equal(await response.closed, 'ended')
})

t.test('HEAD is answered by the head alone and leaves nothing open', async (t) => {
  const { port, next, hub } = await streams(t)
  await using client = await connect('HEAD', '/', { port })
  t.equal(client.status, 200)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
  const { response } = await next()
  t.equal(response.isHead, true)
  t.equal(response.isOpen, false)
  t.equal(await client.text(), '')
  t.equal(await response.closed, 'ended')
  t.equal(hub.size, 0)
})

for (const [heartbeatMs, asked] of [[0, [[true, 60_000]]], [15_000, []]] as const) {
  t.test(`with heartbeats every ${heartbeatMs} ms the kernel is ${heartbeatMs === 0 ? '' : 'not '}asked to look for peers that are gone`, async (t) => {
    const hub = new SseHub({ heartbeatMs })
    const calls: unknown[][] = []
    const { port } = await serve(t, (reply) => {
      const { socket } = reply.request.raw
      socket.setKeepAlive = (...args) => {
        calls.push(args)
        return socket
      }
      hub.open(reply).end()
    })
    await using client = await connect('GET', '/', { port })
    await client.text()
    t.same(calls, asked)
  })
}

t.test('streams leave no listeners on a connection that goes on', async (t) => {
  const hub = new SseHub()
  const counts: number[] = []
  const { port } = await serve(t, (reply) => {
    const { socket } = reply.request.raw
    counts.push(socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0))
    hub.open(reply).end('data: x\n\n')
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let round = 0; round < 5; round++) {
    const [message] = await once(get({ port, host: '127.0.0.1', agent }), 'response')
    await once(message.resume(), 'close')
  }
  agent.destroy()
  t.same(counts, Array.from({ length: 5 }, () => counts[0]))
})

t.test('a stream that is opened for a client who has left already is over at once', async (t) => {
  const hub = new SseHub()
  const opened = deferred<SseResponse>()
  const arrived = deferred<undefined>()
  const { port } = await serve(t, (reply) => {
    reply.raw.once('close', () => { setImmediate(() => { opened.resolve(hub.open(reply)) }) })
    arrived.resolve(undefined)
  })
  const request = get({ port, host: '127.0.0.1', agent: false })
  request.on('error', () => {})
  await arrived.promise
  request.destroy()
  const response = await opened.promise
  t.equal(await response.closed, 'disconnected')
  t.equal(response.signal.aborted, true)
  t.equal(response.isOpen, false)
  t.equal(hub.size, 0)
})
