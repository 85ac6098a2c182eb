import cors from '@fastify/cors'
import Fastify, { type FastifyInstance } from 'fastify'
import { from, take, toArray, lastValueFrom } from 'rxjs'
import t from 'tap'
import eventStream, { eventStream as named } from 'fastify-agents/event-stream'
import { connect, parseFrames, type SseClient } from '../../helpers/sse-client.ts'
import { buildApp, turn } from './app.ts'

const summary = (frames: Awaited<ReturnType<SseClient['take']>>): unknown[] => frames.map(({ id, event, data }) => ({ id, event, data }))

t.test('a subscriber gets what is published after it came: text as it is, the rest as JSON', async (t) => {
  const { app, port } = await buildApp(t)
  app.bus.publish('orders', { data: 'before' })
  await using client = await connect('GET', '/events/orders', { port })
  const { epoch } = app.bus.topic('orders')
  t.same(summary([await client.next()]), [{ id: `${epoch}.1`, event: undefined, data: undefined }], 'a cursor to come back with')
  t.equal(app.bus.publish('orders', { event: 'created', data: { id: 7 } }), 2)
  app.bus.publish('orders', { data: 'line 1\r\nline 2\revent: forged' })
  app.bus.publish('orders', { event: 'count', data: 0 })
  app.bus.publish('other', { data: 'not for us' })
  app.bus.publish('orders', { data: null })
  t.same(summary(await client.take(4)), [
    { id: `${epoch}.2`, event: 'created', data: '{"id":7}' },
    { id: `${epoch}.3`, event: undefined, data: 'line 1\nline 2\nevent: forged' },
    { id: `${epoch}.4`, event: 'count', data: '0' },
    { id: `${epoch}.5`, event: undefined, data: 'null' }
  ])
  t.equal(client.received.includes('\r'), false)
  t.throws(() => app.bus.publish('orders', { event: 'x\ndata: forged', data: 1 }), { code: 'AGT_ERR_BUS_EVENT_NAME' })
})

t.test('a client resumes by header, by `after`, from the start, and the header wins', async (t) => {
  const { app, port } = await buildApp(t)
  for (let n = 1; n <= 5; n++) app.bus.publish('a', { data: n })
  const { epoch } = app.bus.topic('a')
  const seen = async (path: string, headers = {}): Promise<unknown> => {
    await using client = await connect('GET', path, { port, headers })
    const frames = await client.until((frame) => frame.id === `${epoch}.5`)
    return frames.map((frame) => frame.data)
  }
  t.same(await seen('/events/a', { 'last-event-id': `${epoch}.2` }), ['3', '4', '5'])
  t.same(await seen(`/events/a?after=${epoch}.3`), ['4', '5'])
  t.same(await seen('/events/a?after=3'), ['4', '5'], 'a bare sequence fits any life of the topic')
  t.same(await seen(`/events/a?after=${epoch}.1`, { 'last-event-id': `${epoch}.4` }), ['5'])
  t.same(await seen('/events/a?from=start'), ['1', '2', '3', '4', '5'])
  t.same(await seen('/events/a?from=start', { 'last-event-id': '' }), ['1', '2', '3', '4', '5'], 'an empty header is none')
})

t.test('a cursor at the edge of what is kept: all of it, a gap, nothing yet, or a reset', async (t) => {
  const { app, port } = await buildApp(t, { replay: { maxEvents: 16 } })
  for (let n = 1; n <= 40; n++) app.bus.publish('a', { data: n })
  const { epoch } = app.bus.topic('a')
  const kept = Array.from({ length: 16 }, (_, n) => ({ id: `${epoch}.${n + 25}`, event: undefined, data: String(n + 25) }))
  const gap = { id: `${epoch}.24`, event: 'gap', data: '{"oldest":25}' }
  for (const [cursor, frames] of [
    ['24', kept], ['23', [gap, ...kept]], ['25', kept.slice(1)], ['0', [gap, ...kept]], ['40', []], ['41', [gap, ...kept]],
    [`${epoch}.24`, kept], [`${epoch}.41`, [gap, ...kept]], ['otherlife.40', [gap, ...kept]], ['garbage', [gap, ...kept]], ['-1', [gap, ...kept]],
    [`${epoch}.024`, [gap, ...kept]], [`${epoch}.9007199254740993`, [gap, ...kept]], [`${epoch}.`, [gap, ...kept]]
  ] as const) {
    await using client = await connect('GET', '/events/a', { port, headers: { 'last-event-id': cursor } })
    const received = await client.take(frames.length)
    t.same(summary(received), frames, cursor)
    app.bus.topic('a')
  }
  await using start = await connect('GET', '/events/a?from=start', { port })
  t.same(summary(await start.take(17)), [gap, ...kept])
})

t.test('a client that lost its connection before the first event misses nothing', async (t) => {
  const { app, port } = await buildApp(t)
  app.bus.publish('a', { data: 1 })
  await using client = await connect('GET', '/events/a', { port })
  const { id = '' } = await client.next()
  await client.destroy()
  app.bus.publish('a', { data: 2 })
  await using again = await connect('GET', '/events/a', { port, headers: { 'last-event-id': id } })
  t.equal((await again.next()).data, '2')
})

t.test('hooks of the host decide who may listen, and their headers stand on the stream', async (t) => {
  const { port } = await buildApp(t, {}, async (app) => {
    await app.register(cors, { origin: 'https://a.example' })
    app.addHook('onRequest', async (request, reply) => { reply.header('x-request', request.id).header('set-cookie', 'a=1') })
    app.addHook('preHandler', async (request, reply) => {
      if (request.headers.authorization !== 'Bearer yes') return reply.code(401).send({ message: 'no' })
    })
  })
  await using refused = await connect('GET', '/events/a', { port })
  t.equal(refused.status, 401)
  t.same(await refused.json(), { message: 'no' })
  await using client = await connect('GET', '/events/a', { port, headers: { authorization: 'Bearer yes', origin: 'https://a.example' } })
  t.equal(client.status, 200)
  t.equal(client.headers['access-control-allow-origin'], 'https://a.example')
  t.same(client.headers['set-cookie'], ['a=1'])
  t.match(client.headers['x-request'], /^req-/)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
})

t.test('a client that does not take event streams gets 406 and opens nothing', async (t) => {
  const { app, port } = await buildApp(t)
  await using client = await connect('GET', '/events/a', { port, headers: { accept: 'application/json' } })
  t.equal(client.status, 406)
  t.match(await client.json(), { statusCode: 406, code: 'AGT_ERR_STREAM_NOT_ACCEPTABLE' })
  t.equal(app.bus.size, 0)
  await using any = await connect('GET', '/events/a', { port, headers: { accept: '*/*' } })
  t.equal(any.status, 200)
})

t.test('HEAD gets the headers alone and makes no topic', async (t) => {
  const { app, port } = await buildApp(t)
  await using client = await connect('HEAD', '/events/a', { port })
  t.equal(client.status, 200)
  t.equal(client.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(await client.text(), '')
  t.equal(app.bus.size, 0)
})

t.test('more topics than allowed are refused with 503, and make room when their readers go', async (t) => {
  const { app, port } = await buildApp(t, { maxTopics: 1 })
  const first = await connect('GET', '/events/a', { port })
  await using second = await connect('GET', '/events/b', { port })
  t.equal(second.status, 503)
  t.match(await second.json(), { code: 'AGT_ERR_BUS_TOPIC_LIMIT' })
  const topic = app.bus.topic('a')
  await first.destroy()
  while (topic.readers > 0) await turn()
  await using third = await connect('GET', '/events/b', { port })
  t.equal(third.status, 200)
})

t.test('handlers may be synchronous or asynchronous, and may use the stream they opened', async (t) => {
  const { app, port } = await buildApp(t, {}, (app) => {
    app.get('/async', async (request, reply) => {
      const stream = reply.stream('a', { from: 'start' })
      stream.write('event: hello\ndata: you\n\n')
      await stream.closed
    })
  })
  app.bus.publish('a', { data: 1 })
  await using client = await connect('GET', '/async', { port })
  t.same((await client.take(2)).map((frame) => [frame.event, frame.data]), [[undefined, '1'], ['hello', 'you']])
})

t.test('a subscription goes through reply.sse.send() as the same bytes', async (t) => {
  const { app, port } = await buildApp(t, {}, (app) => {
    app.get('/sse', { sse: 'only' }, async (request, reply) => {
      const events = app.bus.subscribe('a', { after: reply.sse.lastEventId ?? undefined, from: 'start' })
      reply.sse.onClose(() => events.close())
      await reply.sse.send(events)
    })
    app.get('/json', { sse: true }, async (request, reply) => { await reply.sse.send({ id: 'x', data: { a: 1 } }) })
  })
  for (const data of ['text', { a: 'b\u2028' }, 'a\r\nid: forged', 'a\rb', '']) app.bus.publish('a', { event: 'e', data })
  app.bus.topic('a').end()
  await using sent = await connect('GET', '/sse', { port })
  await using streamed = await connect('GET', '/events/a?from=start', { port })
  const frames = summary(await streamed.rest())
  t.same(frames.map((frame) => (frame as { data: string }).data), ['text', '{"a":"b\\u2028"}', 'a\nid: forged', 'a\nb', ''])
  t.same(summary(await sent.rest()).map((frame) => ({ ...frame as object, data: (frame as { data: string }).data.replace('\u2028', '\\u2028') })), frames)
  await using json = await connect('GET', '/json', { port, headers: { accept: 'text/event-stream' } })
  t.equal(await json.text(), 'id: x\ndata: {"a":1}\n\n')
})

t.test('a subscription is an async iterable, a web stream, and a source for RxJS', async (t) => {
  const { app } = await buildApp(t)
  for (let n = 1; n <= 3; n++) app.bus.publish('a', { event: 'tick', data: { n } })
  const { epoch } = app.bus.topic('a')
  const items = [1, 2, 3].map((n) => ({ id: `${epoch}.${n}`, event: 'tick', data: `{"n":${n}}` }))
  const looped = []
  for await (const item of app.bus.subscribe('a', { from: 'start' })) {
    looped.push(item)
    if (looped.length === 3) break
  }
  t.same(looped, items)
  const reader = app.bus.subscribe('a', { after: `${epoch}.1` }).toReadableStream().getReader()
  t.same([await reader.read(), await reader.read()], items.slice(1).map((value) => ({ done: false, value })))
  await reader.cancel()
  t.same(await lastValueFrom(from(app.bus.subscribe('a', { from: 'start' })).pipe(take(3), toArray())), items)
  t.equal(app.bus.topic('a').readers, 0)
})

t.test('@fastify/sse is left to the host that has registered it', async (t) => {
  const { default: sse } = await import('@fastify/sse') as unknown as { default: Parameters<FastifyInstance['register']>[0] }
  const app = Fastify()
  await app.register(sse, { serializer: () => 'of the host' } as object)
  await app.register(eventStream)
  app.get('/', { sse: 'only' }, async (request, reply) => { await reply.sse.send({ data: 1 }) })
  t.equal((await app.inject('/')).body, 'data: of the host\n\n')
  await app.close()
})

t.test('siblings and children share the one bus, and a second registration fails', async (t) => {
  const root = Fastify()
  await root.register(named)
  await root.register(async (scope) => {
    scope.get('/', (request, reply) => {
      scope.bus.publish('a', { data: 1 })
      scope.bus.topic('a').end()
      return reply.stream('a', { from: 'start' })
    })
  }, { prefix: '/child' })
  const { body } = await root.inject('/child')
  t.same(parseFrames(body).map((frame) => frame.data), ['1'])
  await root.close()

  const twice = Fastify()
  await twice.register(eventStream)
  await t.rejects(async () => { await twice.register(eventStream) }, { code: 'FST_ERR_DEC_ALREADY_PRESENT' })
})

t.test('refuses options that cannot be used, by name and value', async (t) => {
  for (const [options, message] of [
    [{ replay: 5 }, /"replay".*5/], [{ replay: null }, /"replay".*null/], [{ replay: { maxEvents: -1 } }, /"replay\.maxEvents".*-1/],
    [{ replay: { maxBytes: '4M' } }, /"replay\.maxBytes".*4M/], [{ replay: { ttlMs: 3e9 } }, /"replay\.ttlMs".*3000000000/],
    [{ maxTopics: 0 }, /"maxTopics".*0/], [{ maxTotalBytes: NaN }, /"maxTotalBytes".*NaN/], [{ coalesceMs: -5 }, /"coalesceMs".*-5/],
    [{ heartbeatMs: 15 }, /"heartbeatMs".*15/], [{ writeTimeoutMs: 5 }, /"writeTimeoutMs".*5/],
    [{ streamTimeoutMs: 1.5 }, /"streamTimeoutMs".*1\.5/], [{ closeTimeoutMs: null }, /"closeTimeoutMs".*null/], [{ sliceMs: 'x' }, /"sliceMs".*x/]
  ] as const) {
    const app = Fastify()
    await t.rejects(async () => { await app.register(eventStream, options as never) }, { code: 'AGT_ERR_OPTION_INVALID', message }, JSON.stringify(options))
  }
})

t.test('while the app closes its publishers may go on, and nobody new is let in', async (t) => {
  const app = Fastify()
  await app.register(eventStream)
  const seqs: number[] = []
  const results: unknown[] = []
  app.addHook('preClose', async () => {
    seqs.push(app.bus.publish('a', { data: 1 }))
    results.push(await app.bus.subscribe('a', { from: 'start' }).next())
  })
  app.addHook('onClose', async () => { seqs.push(app.bus.publish('a', { data: 2 })) })
  await app.ready()
  await app.close()
  t.same(seqs, [1, 2])
  t.same(results, [{ done: true, value: undefined }])
  t.throws(() => app.bus.publish('a', { data: 3 }), { code: 'AGT_ERR_BUS_CLOSED' })
})

t.test('closing the app ends streams and subscriptions, with cursors', async (t) => {
  const { app, port } = await buildApp(t, {}, (app) => {
    app.get('/sse', { sse: 'only' }, async (request, reply) => { await reply.sse.send(app.bus.subscribe('a')) })
  })
  const { epoch } = app.bus.topic('a', { lifetime: 'use' })
  const clients = []
  for (let n = 0; n < 50; n++) clients.push(await connect('GET', '/events/a?from=start', { port }))
  const opening = connect('GET', '/sse', { port }) // its head comes with the first event
  while (app.bus.topic('a').readers < 51) await turn()
  app.bus.publish('a', { data: 1 })
  await using sse = await opening
  for (const client of clients) await client.next()
  await sse.next()
  const subscription = app.bus.subscribe('a')
  const next = subscription.next()
  const closing = app.close()
  for (const client of clients) {
    const frames = await client.rest()
    t.same(summary(frames), [{ id: `${epoch}.1`, event: undefined, data: undefined }])
    t.equal(client.complete, true)
  }
  t.same(await next, { done: true, value: undefined })
  await sse.rest()
  await closing
})
