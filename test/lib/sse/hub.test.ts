import { mock } from 'node:test'
import t from 'tap'
import { SseHub, type SseResponse } from '../../../lib/sse/index.ts'
import { connect } from '../../helpers/sse-client.ts'
import { deferred, serve, streams } from '../../helpers/sse-server.ts'

const FRAME = `data: ${'x'.repeat(56)}\n\n`
/** More than the kernel takes for a client that does not read. */
const STALLING = Buffer.alloc(16 * 1024 * 1024, FRAME)

t.beforeEach(() => { mock.timers.enable({ apis: ['setInterval', 'setTimeout'] }) })
t.afterEach(() => { mock.timers.reset() })

t.test('a silent stream gets a heartbeat after each interval, a busy one none', async (t) => {
  const { port, next, hub } = await streams(t, new SseHub({ heartbeatMs: 8000 }))
  await using idle = await connect('GET', '/', { port })
  const { response: idleResponse } = await next()
  await using busy = await connect('GET', '/', { port })
  const { response: busyResponse } = await next()
  for (let second = 1; second <= 17; second++) {
    mock.timers.tick(1000)
    busyResponse.write(`data: ${second}\n\n`)
  }
  idleResponse.end('data: end\n\n')
  busyResponse.end()
  t.equal(await idle.text(), ': heartbeat\n\n: heartbeat\n\ndata: end\n\n')
  t.equal(await busy.text(), Array.from({ length: 17 }, (_, second) => `data: ${second + 1}\n\n`).join(''))
  t.equal(hub.size, 0)
})

t.test('the silence counts from the last write', async (t) => {
  const { port, next } = await streams(t, new SseHub({ heartbeatMs: 8000 }))
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  mock.timers.tick(5000)
  response.write('data: 5\n\n')
  mock.timers.tick(7000)
  response.write('data: 12\n\n')
  mock.timers.tick(8000)
  response.end()
  t.equal(await client.text(), 'data: 5\n\ndata: 12\n\n: heartbeat\n\n')
})

t.test('the heartbeat has the text that was asked for, and 0 turns it off', async (t) => {
  for (const [options, text] of [[{ heartbeat: ':\n\n', heartbeatMs: 1000 }, ':\n\n'], [{ heartbeatMs: 0 }, ''], [{ heartbeatMs: 0, writeTimeoutMs: 0 }, '']] as const) {
    const { port, next } = await streams(t, new SseHub(options))
    await using client = await connect('GET', '/', { port })
    const { response } = await next()
    mock.timers.tick(1500)
    response.end()
    t.equal(await client.text(), text)
  }
})

t.test('a stalled stream gets no heartbeats, and is dropped when its drain does not come in time', async (t) => {
  const { port, next, hub } = await streams(t, new SseHub({ heartbeatMs: 1000, writeTimeoutMs: 5000 }))
  const client = await connect('GET', '/', { port })
  const { response } = await next()
  t.equal(response.write(STALLING), false)
  const waiting = response.pendingBytes
  mock.timers.tick(4500)
  t.equal(response.pendingBytes, waiting)
  t.equal(response.isOpen, true)
  const signal = response.signal
  mock.timers.tick(1000)
  t.equal(response.isOpen, false)
  t.equal(signal.reason.end, 'timeout')
  t.equal(await response.closed, 'timeout')
  t.equal(await client.text().then((text) => text.includes('heartbeat')), false)
  t.equal(client.complete, false)
  t.equal(hub.size, 0)
})

t.test('a write deadline shorter than the heartbeat, or without one, is met as well', async (t) => {
  for (const heartbeatMs of [0, 60_000]) {
    const { port, next } = await streams(t, new SseHub({ heartbeatMs, writeTimeoutMs: 1000 }))
    await using client = await connect('GET', '/', { port })
    const { response } = await next()
    mock.timers.tick(700)
    t.equal(response.write(STALLING), false)
    mock.timers.tick(900)
    t.equal(response.isOpen, true)
    mock.timers.tick(300)
    t.equal(await response.closed, 'timeout')
    t.equal(client.bytes, 0)
  }
})

t.test('without a write deadline a stalled stream waits for as long as the client does', async (t) => {
  const { port, next } = await streams(t, new SseHub({ writeTimeoutMs: 0, heartbeatMs: 1000 }))
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  t.equal(response.write(STALLING), false)
  mock.timers.tick(3_600_000)
  t.equal(response.isOpen, true)
  response.end('data: end\n\n')
  t.equal((await client.text()).endsWith('data: end\n\n'), true)
})

t.test('after a drain the stream is alive again', async (t) => {
  const { port, next } = await streams(t, new SseHub({ heartbeatMs: 1000, writeTimeoutMs: 2000 }))
  await using client = await connect('GET', '/', { port })
  const { response, reply } = await next()
  const drained = deferred<void>()
  reply.raw.once('drain', () => { drained.resolve() })
  t.equal(response.write(STALLING), false)
  while (client.bytes < STALLING.length) await client.next()
  await drained.promise
  mock.timers.tick(3000)
  t.equal(response.isOpen, true)
  response.end()
  const rest = await client.rest()
  t.same(rest.filter((frame) => frame.comments.length > 0).map((frame) => frame.raw), [': heartbeat\n\n', ': heartbeat\n\n', ': heartbeat\n\n'])
})

t.test('a stream ends when its time is over, with a hint when to come back', async (t) => {
  const { port, next } = await streams(t, new SseHub({ heartbeatMs: 0, writeTimeoutMs: 0, streamTimeoutMs: 60_000 }))
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  for (let second = 1; second < 60; second++) {
    mock.timers.tick(1000)
    response.write(`data: ${second}\n\n`)
  }
  t.equal(response.isOpen, true)
  mock.timers.tick(1000)
  t.equal(response.isOpen, false)
  t.equal(response.signal.reason.end, 'timeout')
  t.match(await client.text(), /data: 59\n\nretry: \d+\n\n$/)
  t.equal(client.complete, true)
  t.equal(await response.closed, 'timeout')
})

t.test('a stalled stream whose time is over is dropped by its write deadline', async (t) => {
  const { port, next } = await streams(t, new SseHub({ heartbeatMs: 0, writeTimeoutMs: 5000, streamTimeoutMs: 4000 }))
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  t.equal(response.write(STALLING), false)
  mock.timers.tick(4000)
  t.equal(response.isOpen, false)
  mock.timers.tick(2000)
  t.equal(await response.closed, 'timeout')
  t.equal(client.bytes, 0)
})

t.test('closing ends idle, busy and stalled streams; the stalled are dropped when the time is over', async (t) => {
  const { port, next, hub } = await streams(t, new SseHub({ closeTimeoutMs: 2000 }))
  await using idle = await connect('GET', '/', { port })
  const { response: idleResponse } = await next()
  await using busy = await connect('GET', '/', { port })
  const { response: busyResponse } = await next()
  const stalled = await connect('GET', '/', { port })
  const { response: stalledResponse } = await next()
  busyResponse.write('data: 1\n\n')
  t.equal(stalledResponse.write(STALLING), false)
  const { signal } = idleResponse
  const closed = hub.close()
  t.equal(signal.reason.end, 'closed')
  t.equal(hub.close(), closed)
  t.match(await idle.text(), /^retry: \d+\n\n$/)
  t.match(await busy.text(), /^data: 1\n\nretry: \d+\n\n$/)
  t.same([await idleResponse.closed, await busyResponse.closed], ['closed', 'closed'])
  t.equal(hub.size, 1)
  mock.timers.tick(2000)
  t.equal(await stalledResponse.closed, 'closed')
  await closed
  t.equal(hub.size, 0)
  await stalled.text()
  t.equal(stalled.complete, false)
})

t.test('a stalled client that reads on while the hub closes gets everything, and a closed stream is complete', async (t) => {
  const { port, next, hub } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  t.equal(response.write(STALLING), false)
  const closed = hub.close()
  const text = await client.text()
  t.match(text.slice(STALLING.length), /^retry: \d+\n\n$/)
  t.equal(client.complete, true)
  await closed
})

t.test('clients sent away are told to come back at different times', async (t) => {
  const { port, next, hub } = await streams(t)
  const clients = []
  for (let n = 0; n < 10; n++) {
    clients.push(await connect('GET', '/', { port }))
    await next()
  }
  await hub.close()
  const waits = (await Promise.all(clients.map((client) => client.rest()))).map(([frame]) => frame?.retry ?? 0)
  t.ok(waits.every((ms) => ms >= 500 && ms < 5000))
  t.ok(new Set(waits).size > 1)
})

t.test('a closed hub opens nothing, and leaves the reply to be answered otherwise', async (t) => {
  const hub = new SseHub()
  await hub.close()
  const { port } = await serve(t, (reply) => {
    t.throws(() => hub.open(reply), { code: 'AGT_ERR_SSE_CLOSING', statusCode: 503 })
    t.equal(reply.isHijacked, false)
    reply.raw.writeHead(503).end()
  })
  await using client = await connect('GET', '/', { port })
  t.equal(client.status, 503)
})

t.test('refuses times that cannot be kept', async (t) => {
  for (const [options, name] of [
    [{ heartbeatMs: 999 }, 'heartbeatMs'], [{ heartbeatMs: -1 }, 'heartbeatMs'], [{ heartbeatMs: '15s' }, 'heartbeatMs'],
    [{ writeTimeoutMs: 1 }, 'writeTimeoutMs'], [{ streamTimeoutMs: 3e9 }, 'streamTimeoutMs'], [{ closeTimeoutMs: NaN }, 'closeTimeoutMs']
  ] as const) {
    t.throws(() => new SseHub(options as ConstructorParameters<typeof SseHub>[0]), { code: 'AGT_ERR_OPTION_INVALID', message: new RegExp(name) })
  }
})

t.test('dropping a stream twice, or one that is over, does nothing', async (t) => {
  const { port, next } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  response.destroy('timeout')
  response.destroy('closed')
  t.equal(await response.closed, 'timeout')
  response.destroy('closed')
  response.close()
  t.equal(await response.closed, 'timeout')
  await client.text()
  const pending: SseResponse['closed'] = response.closed
  t.equal(await pending, 'timeout')
})
