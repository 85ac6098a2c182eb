import { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { type Attachment, EventBus, type Topic } from '../../../lib/bus/index.ts'
import { encodeFrame, SseHub, type SseResponse, sseView } from '../../../lib/sse/index.ts'
import { connect, type SseClient } from '../../helpers/sse-client.ts'
import { deferred, serve, streams } from '../../helpers/sse-server.ts'

const view = sseView()

function fill (topic: Topic, count: number, size = 10): void {
  for (let n = 0; n < count; n++) topic.append({ data: JSON.stringify({ n, text: 'x'.repeat(size) }) })
}

function turn (): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve) })
}

function textOf (topic: Topic, after = 0): string {
  return topic.read(after).map(({ seq, data }) => `id: ${topic.epoch}.${seq}\ndata: ${data}\n\n`).join('')
}

/** A stream whose client reads nothing, until its connection takes no more. */
async function stall (t: Test): Promise<{ readonly topic: Topic, readonly client: SseClient, readonly response: SseResponse, readonly attachment: Attachment }> {
  const topic = new EventBus({ replay: { maxEvents: 100_000, maxBytes: 100e6 } }).topic('a')
  const { port, next } = await streams(t)
  const client = await connect('GET', '/', { port })
  const { response } = await next()
  const attachment = response.follow(topic, { view })
  while (attachment.lagBytes === 0) {
    fill(topic, 1, 3000)
    await turn()
  }
  return { topic, client, response, attachment }
}

t.test('what was appended before, in between and after comes once and in order, and the stream ends with the topic', async (t) => {
  const topic = new EventBus().topic('a')
  const { port, next, hub } = await streams(t)
  fill(topic, 3)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  const attachment = response.follow(topic, { view })
  fill(topic, 3)
  t.same((await client.take(6)).map((frame) => frame.id), [1, 2, 3, 4, 5, 6].map((seq) => `${topic.epoch}.${seq}`))
  fill(topic, 2)
  topic.end()
  t.equal(await client.text(), textOf(topic))
  t.equal(await response.closed, 'ended')
  t.same(attachment.cursor, { epoch: topic.epoch, seq: 8 })
  t.same([topic.readers, hub.size], [0, 0])
})

t.test('small chunks, large ones and heartbeats arrive whole, over a response that node frames as well', async (t) => {
  for (const [name, patch] of [
    ['own framing', () => {}],
    ['node\'s', (raw: ServerResponse) => { raw.write = ServerResponse.prototype.write.bind(raw) as typeof raw.write }]
  ] as const) {
    const topic = new EventBus({ replay: { maxEvents: 10_000 } }).topic(name)
    const hub = new SseHub()
    const { port } = await serve(t, (reply) => {
      patch(reply.raw)
      hub.open(reply).follow(topic, { view })
    })
    await using client = await connect('GET', '/', { port })
    for (const size of [1, 4000, 10, 5000, 70_000, 2, 4096, 0]) {
      fill(topic, 3, size)
      await client.take(3)
    }
    topic.end()
    t.equal(await client.text(), textOf(topic), name)
    t.equal(client.complete, true)
  }
})

t.test('one chunk goes to many readers as the same bytes', async (t) => {
  const topic = new EventBus().topic('a')
  const { port, next } = await streams(t)
  const clients = []
  for (let n = 0; n < 5; n++) {
    clients.push(await connect('GET', '/', { port }))
    const { response } = await next()
    response.follow(topic, { view })
  }
  for (let round = 0; round < 5; round++) {
    fill(topic, 2)
    for (const client of clients) await client.take(2)
  }
  topic.end()
  t.same(await Promise.all(clients.map((client) => client.text())), clients.map(() => textOf(topic)))
})

t.test('a stalled reader goes on where it was, and finds a gap in the place of what is gone', async (t) => {
  const topic = new EventBus({ replay: { maxEvents: 30 } }).topic('a')
  const { port, next } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  response.follow(topic, {
    view,
    gap: ({ reason, oldest, last }) => encodeFrame({ event: 'gap', data: JSON.stringify({ reason, oldest, last }) })
  })
  for (let n = 0; n < 400; n++) {
    fill(topic, 1, 50_000)
    await turn()
  }
  t.ok(topic.oldest > 300)
  topic.end()
  const frames = await client.rest()
  const gaps = frames.filter((frame) => frame.event === 'gap')
  t.same(gaps.map((frame) => frame.data), [JSON.stringify({ reason: 'lagged', oldest: 371, last: 400 })])
  const ids = frames.filter((frame) => frame.event === undefined).map((frame) => Number(frame.id?.split('.')[1]))
  const cut = ids.indexOf(371)
  t.same(ids, [...Array.from({ length: cut }, (_, n) => n + 1), ...Array.from({ length: 30 }, (_, n) => n + 371)])
  t.equal(await response.closed, 'ended')
})

t.test('a stalled reader of small events holds no more than its socket takes, and gets all of them when it goes on', async (t) => {
  const { topic, client: stalled, response } = await stall(t)
  await using client = stalled
  const pending = response.pendingBytes
  fill(topic, 100, 3000)
  await turn()
  t.equal(response.pendingBytes, pending)
  t.ok(pending < 64 * 1024)
  topic.end()
  t.equal(await client.text(), textOf(topic))
  t.equal(await response.closed, 'ended')
})

t.test('a stream ended while its reader stalls is complete when the reader goes on', async (t) => {
  const { topic, client: stalled, response, attachment } = await stall(t)
  await using client = stalled
  const { seq } = attachment.cursor
  response.end('data: end\n\n')
  t.equal(await client.text(), textOf(topic).slice(0, textOf(topic).length - textOf(topic, seq).length) + 'data: end\n\n')
  t.equal(await response.closed, 'ended')
  t.equal(topic.readers, 0)
})

t.test('a reader too far behind is cut, with the cursor to come back with', async (t) => {
  const topic = new EventBus({ replay: { maxEvents: 10_000, maxBytes: 100e6 } }).topic('a')
  const { port, next } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  response.follow(topic, { view, maxLagBytes: 1_000_000 })
  while (response.isOpen) {
    fill(topic, 1, 50_000)
    await turn()
  }
  t.equal(topic.readers, 0)
  const frames = await client.rest()
  const farewell = frames.pop()
  t.match(farewell?.raw, /^id: \S+\nretry: \d+\n\n$/)
  t.equal(farewell?.id, frames.at(-1)?.id)
  await using again = await connect('GET', '/', { port })
  const second = await next()
  second.response.follow(topic, { view, after: farewell?.id })
  topic.end()
  t.equal(await client.text() + await again.text(), textOf(topic).replace(farewell?.id === undefined ? '' : `id: ${topic.epoch}.${frames.length + 1}\n`, (id) => `${farewell?.raw}${id}`))
})

t.test('closing the hub ends each stream with its cursor, in the form of its view', async (t) => {
  for (const [form, id] of [['epoch', 'e1.2'], ['seq', '2'], ['none', undefined]] as const) {
    const topic = new EventBus().topic('a', { epoch: 'e1' })
    const { port, next, hub } = await streams(t)
    await using client = await connect('GET', '/', { port })
    const { response } = await next()
    response.follow(topic, { view: sseView({ id: form }) })
    fill(topic, 2)
    await client.take(2)
    await hub.close()
    const [farewell] = await client.rest()
    t.equal(farewell?.id, id)
    t.match(farewell?.raw, /retry: \d+\n\n$/)
    t.equal(topic.readers, 0)
  }
})

t.test('closing the bus ends each stream with its cursor', async (t) => {
  const bus = new EventBus()
  const { port, next } = await streams(t)
  await using client = await connect('GET', '/', { port })
  const { response } = await next()
  response.follow(bus.topic('a', { epoch: 'e1' }), { view })
  bus.close()
  t.match(await client.text(), /^id: e1.0\nretry: \d+\n\n$/)
  t.equal(await response.closed, 'ended')
})

t.test('a client that goes leaves no reader behind: idle, or waiting for drain', async (t) => {
  for (const size of [10, 20_000_000]) {
    const topic = new EventBus({ replay: { maxBytes: 100e6 } }).topic('a')
    const { port, next } = await streams(t)
    const client = await connect('GET', '/', { port })
    const { response } = await next()
    fill(topic, 2, size)
    response.follow(topic, { view })
    t.equal(topic.readers, 1)
    await client.reset()
    t.equal(await response.closed, 'disconnected')
    t.equal(topic.readers, 0)
    fill(topic, 2)
  }
})

t.test('a stream that is over attaches to nothing, and a response follows one topic', async (t) => {
  const topic = new EventBus().topic('a')
  const followed = deferred<SseResponse>()
  const hub = new SseHub()
  const { port } = await serve(t, (reply) => {
    const response = hub.open(reply)
    const attachment = response.follow(topic, { view })
    if (response.isHead) {
      attachment.resume()
      attachment.close()
      t.same([topic.readers, attachment.cursor, attachment.lagBytes], [0, { seq: 0 }, 0])
    } else {
      t.throws(() => response.follow(topic, { view }), { code: 'AGT_ERR_SSE_FOLLOWING' })
      followed.resolve(response)
    }
  })
  await using head = await connect('HEAD', '/', { port })
  t.equal(await head.text(), '')
  await using client = await connect('GET', '/', { port })
  const response = await followed.promise
  t.equal(topic.readers, 1)
  response.end('data: mine\n\n')
  t.equal(await client.text(), 'data: mine\n\n')
  await response.closed
  t.equal(topic.readers, 0)
})

t.test('a topic that has ended before is written whole and ends the stream at once', async (t) => {
  const topic = new EventBus().topic('a')
  fill(topic, 3)
  topic.end()
  const hub = new SseHub()
  const { port } = await serve(t, (reply) => { hub.open(reply).follow(topic, { view }) })
  await using client = await connect('GET', '/', { port })
  t.equal(await client.text(), textOf(topic))
  t.equal(hub.size, 0)
})
