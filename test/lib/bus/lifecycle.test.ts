import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

t.test('a topic is found by its key, whatever the key', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  for (const key of ['', '__proto__', 'constructor', 'a\nb', '🙂']) {
    t.equal(bus.find(key), undefined)
    const topic = bus.topic(key)
    t.equal(topic.key, key)
    t.equal(bus.topic(key, { epoch: 'ignored' }), topic)
    t.equal(bus.find(key), topic)
  }
})

t.test('each life of a topic has an epoch of its own', async (t) => {
  const epochs = range(1, 50).map((n) => {
    const bus = new EventBus()
    const { epoch } = bus.topic('t')
    t.match(epoch, /^[A-Za-z0-9_-]+$/)
    const other = bus.topic('u').epoch
    bus.close()
    return [epoch, other]
  }).flat()
  t.equal(new Set(epochs).size, 100)
})

t.test('the end comes after the last event, once, to every reader', async (t) => {
  const { bus, topic } = makeTopic(t)
  const [one, two, late] = [new Recorder(), new Recorder(1), new Recorder()]
  topic.attach({ view: lines(), sink: one })
  const stalled = topic.attach({ view: lines({ key: 'other' }), sink: two })
  topic.append({ data: 'a' })
  await delivered()
  topic.append({ data: 'b' })
  topic.end()
  topic.end()
  t.equal(topic.isEnded, true)
  t.throws(() => topic.append({ data: 'c' }), { code: 'AGT_ERR_BUS_TOPIC_ENDED' })
  t.throws(() => bus.publish('t', { data: 'c' }), { code: 'AGT_ERR_BUS_TOPIC_ENDED' })
  await delivered()
  t.strictSame([one.seqs, one.ends], [[1, 2], [['complete', 2]]])
  t.strictSame([two.seqs, two.ends], [[1], []])
  two.room = Infinity
  stalled.resume()
  t.strictSame([two.seqs, two.ends], [[1, 2], [['complete', 2]]])
  topic.attach({ view: lines(), sink: late, from: 'live' })
  t.strictSame([late.seqs, late.ends], [[], [['complete', 2]]])
  t.equal(topic.readers, 0)
})

t.test('an empty topic can end', async (t) => {
  const { bus, topic } = makeTopic(t)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  const subscription = topic.subscribe()
  const next = subscription.next()
  topic.end()
  await delivered()
  t.strictSame(sink.ends, [['complete', 0]])
  t.strictSame(await next, { done: true, value: undefined })
  bus.topic('unread').end()
})

t.test('a detached sink is not called again', async (t) => {
  const { topic } = makeTopic(t)
  const sinks = range(1, 5).map(() => new Recorder())
  const attachments = sinks.map((sink) => topic.attach({ view: lines(), sink }))
  topic.append({ data: 'a' })
  attachments[1]?.close()
  attachments[1]?.close()
  attachments[4]?.close()
  t.equal(topic.readers, 3)
  await delivered()
  attachments[0]?.close()
  topic.append({ data: 'b' })
  topic.end()
  await delivered()
  t.strictSame(sinks.map((sink) => [sink.seqs, sink.ends.length]), [[[1], 0], [[], 0], [[1, 2], 1], [[1, 2], 1], [[], 0]])
  t.equal(topic.readers, 0)
})

t.test('sinks may detach themselves and each other during a delivery, and others may come', async (t) => {
  const { topic } = makeTopic(t)
  const view = lines()
  const sinks = range(0, 9).map(() => new Recorder())
  const attachments = sinks.map((sink) => topic.attach({ view, sink }))
  const newcomer = new Recorder()
  const close = (index: number): void => attachments[index]?.close()
  const [first, third] = [sinks[0], sinks[3]]
  if (first !== undefined) first.onWrite = () => { close(0); close(5); close(9) }
  if (third !== undefined) third.onWrite = () => { if (topic.last === 1) topic.attach({ view, sink: newcomer, from: 'live' }); close(2) }
  topic.append({ data: 'a' })
  await delivered()
  topic.append({ data: 'b' })
  await delivered()
  t.strictSame(sinks.map((sink) => sink.seqs), [[1], [1, 2], [1], [1, 2], [1, 2], [], [1, 2], [1, 2], [1, 2], []])
  t.strictSame(newcomer.seqs, [2])
  t.equal(topic.readers, 7)
})

t.test('closing the bus ends every reader with its cursor and frees everything', async (t) => {
  const bus = new EventBus({ coalesceMs: 1_000 })
  const topic = bus.topic('t')
  const [idle, stalled] = [new Recorder(), new Recorder(1)]
  topic.attach({ view: lines(), sink: idle })
  const attachment = topic.attach({ view: lines(), sink: stalled, lossless: true })
  for (let n = 0; n < 200; n++) topic.append({ data: 'x'.repeat(1_000) })
  const ready = topic.ready()
  t.ok(ready)
  const subscription = bus.subscribe('other')
  const next = subscription.next()
  bus.publish('other', { data: 'undelivered' })
  bus.topic('ended').end()
  const seen = [idle.seqs.length, stalled.seqs.length]
  bus.close()
  bus.close()
  await ready
  t.strictSame(idle.ends, [['closed', seen[0]]])
  t.strictSame(stalled.ends, [['closed', seen[1]]])
  t.strictSame(await next, { done: true, value: undefined })
  t.strictSame([bus.size, bus.bytes, topic.bytes, topic.readers], [0, 0, 0, 0])
  attachment.resume()
  await delivered()
  t.strictSame([idle.seqs.length, stalled.seqs.length], seen)
})

t.test('a sink may close the bus or another reader while it is ended', async (t) => {
  const bus = new EventBus()
  const topic = bus.topic('t')
  const [one, two, three] = [new Recorder(), new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: one })
  const second = topic.attach({ view: lines(), sink: two })
  topic.attach({ view: lines(), sink: three })
  one.onEnd = () => {
    second.close()
    bus.close()
  }
  bus.close()
  t.strictSame([one.ends, two.ends, three.ends], [[['closed', 0]], [], [['closed', 0]]])
  t.strictSame([topic.readers, bus.size], [0, 0])
})

t.test('a topic that is dropped before its time ends its readers, and its key begins a new life', async (t) => {
  const { bus, topic } = makeTopic(t)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  topic.append({ data: 'a' })
  await delivered()
  bus.drop('t')
  bus.drop('t')
  t.strictSame([sink.seqs, sink.ends], [[1], [['closed', 1]]])
  t.strictSame([bus.find('t'), bus.size, bus.bytes], [undefined, 0, 0])
  t.throws(() => topic.append({ data: 'b' }), { code: 'AGT_ERR_BUS_CLOSED' })
  t.not(bus.topic('t').epoch, topic.epoch)
})

t.test('a closed bus and its topics refuse what would be lost', async (t) => {
  const bus = new EventBus()
  const topic = bus.topic('t')
  topic.append({ data: 'a' })
  bus.close()
  t.throws(() => topic.append({ data: 'b' }), { code: 'AGT_ERR_BUS_CLOSED', statusCode: 503 })
  t.throws(() => bus.topic('u'), { code: 'AGT_ERR_BUS_CLOSED' })
  t.throws(() => bus.publish('u', { data: 1 }), { code: 'AGT_ERR_BUS_CLOSED' })
  t.throws(() => bus.subscribe('u'), { code: 'AGT_ERR_BUS_CLOSED' })
  const sink = new Recorder()
  const { epoch } = topic
  const attachments = [
    topic.attach({ view: lines(), sink, after: { epoch: 'other', seq: 7 }, lossless: true }),
    topic.attach({ view: lines(), sink, after: `${epoch}.0` }),
    topic.attach({ view: lines(), sink, after: 'garbage' }),
    topic.attach({ view: lines(), sink }),
    topic.attach({ view: lines(), sink, from: 'live' })
  ]
  t.strictSame(attachments.map(({ cursor, lagBytes }) => [cursor, lagBytes]), [
    [{ epoch: 'other', seq: 7 }, 0], [{ epoch, seq: 0 }, 0], [{ epoch, seq: 0 }, 0], [{ epoch, seq: 0 }, 0], [{ epoch, seq: 1 }, 0]
  ], 'each with the cursor it came with')
  for (const attachment of attachments) {
    attachment.resume()
    attachment.close()
  }
  t.strictSame([sink.chunks, sink.gaps, sink.ends], [[], [], [7, 0, 0, 0, 1].map((seq) => ['closed', seq])])
  t.strictSame(await topic.subscribe().next(), { done: true, value: undefined })
  topic.end()
  t.equal(topic.ready(), undefined)
  t.strictSame([topic.readers, topic.bytes, bus.size], [0, 0, 0])
})

t.test('nothing of the bus keeps a process alive', async (t) => {
  const resources = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = resources()
  const bus = new EventBus({ coalesceMs: 10_000 })
  const topic = bus.topic('t')
  topic.attach({ view: lines(), sink: new Recorder() })
  topic.append({ data: 'a' })
  bus.publish('u', { data: 'a' })
  bus.topic('ended').end()
  t.equal(resources(), before)
  bus.close()
  t.equal(resources(), before)
})
