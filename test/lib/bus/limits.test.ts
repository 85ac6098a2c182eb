import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { EventBus, type EventBusOptions, type Topic } from '../../../lib/bus/index.ts'
import { delivered, lines, range, Recorder } from './recorder.ts'

function makeBus (t: Test, options?: EventBusOptions): EventBus {
  const bus = new EventBus(options)
  t.teardown(() => bus.close())
  return bus
}

function mockTimers (t: Test): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
}

const KB = 'x'.repeat(1_000)

t.test('a topic keeps as many events as it may', async (t) => {
  const bus = makeBus(t)
  const kept = (maxEvents: number | undefined): number[] => {
    const topic = bus.topic(`keeps ${maxEvents}`, { replay: { maxEvents } })
    for (let n = 0; n < 1_000; n++) topic.append({ data: 'e' })
    return [topic.oldest, topic.last, topic.bytes]
  }
  t.strictSame(kept(undefined), [745, 1_000, 256])
  t.strictSame(kept(1), [1_000, 1_000, 1])
  t.strictSame(kept(0), [1_001, 1_000, 0])
})

t.test('the limit of bytes counts payloads and frames', async (t) => {
  const bus = makeBus(t, { replay: { maxBytes: 10_000 } })
  const topic = bus.topic('t')
  for (let n = 0; n < 20; n++) topic.append({ data: KB })
  t.strictSame([topic.oldest, topic.bytes], [11, 10_000], 'ten payloads')
  const sink = new Recorder()
  const attachment = topic.attach({ view: lines(), sink, from: 'start' })
  t.strictSame(sink.seqs, ['gap', ...range(11, 20)], 'who comes gets all of it')
  t.equal(topic.oldest, 17, 'and with their frames there is room for four')
  t.equal(topic.bytes, 4 * 1_000 + Buffer.byteLength(`16>17 ${KB}\n`) * 4)
  topic.append({ data: 'small' })
  await delivered()
  t.strictSame(sink.seqs, ['gap', ...range(11, 21)])
  attachment.close()
  topic.append({ data: 'x'.repeat(5_000) })
  t.strictSame([topic.oldest, topic.bytes], [17, 9_005], 'frames that nobody reads go before events do')
})

t.test('an event larger than the limit is delivered and not kept', async (t) => {
  const bus = makeBus(t, { replay: { maxBytes: 100 } })
  const topic = bus.topic('t')
  const [live, stalled] = [new Recorder(), new Recorder(1)]
  topic.attach({ view: lines(), sink: live })
  const attachment = topic.attach({ view: lines(), sink: stalled })
  topic.append({ data: 'small' })
  topic.append({ data: KB })
  topic.append({ data: 'small' })
  await delivered()
  t.strictSame(live.seqs, [1, 2, 3])
  t.strictSame([topic.oldest, topic.last], [3, 3])
  stalled.room = Infinity
  attachment.resume()
  t.strictSame(stalled.seqs.at(-1), 3)
})

t.test('a topic that keeps nothing is a plain broadcast', async (t) => {
  const bus = makeBus(t, { replay: { maxEvents: 0 } })
  const topic = bus.topic('t')
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  for (let n = 0; n < 3; n++) topic.append({ data: 'e' })
  t.strictSame(sink.seqs, [1, 2, 3])
  t.equal(topic.bytes, 0)
  const late = new Recorder()
  topic.attach({ view: lines(), sink: late, after: { seq: 2 } })
  t.strictSame(late.gaps, [{ reason: 'trimmed', oldest: 4, last: 3 }])
})

t.test('over the number of topics, the longest ended goes first, then the longest silent; never one that is read or owned', async (t) => {
  const bus = makeBus(t, { maxTopics: 6 })
  const keys = (): string[] => ['owned', 'read', 'silent', 'ended 1', 'ended 2', 'loud', 'a', 'b', 'c', 'd', 'e'].filter((key) => bus.find(key) !== undefined)
  bus.topic('owned').append({ data: 'e' })
  bus.publish('loud', { data: 'e' })
  bus.publish('silent', { data: 'e' })
  bus.publish('loud', { data: 'e' })
  const subscription = bus.subscribe('read')
  for (const key of ['ended 1', 'ended 2']) bus.topic(key).append({ data: 'e' })
  bus.find('ended 1')?.end()
  bus.find('ended 2')?.end()
  bus.publish('silent', { data: 'e' })
  bus.publish('loud', { data: 'e' })
  t.equal(bus.size, 6)
  bus.subscribe('a')
  t.strictSame(keys(), ['owned', 'read', 'silent', 'ended 2', 'loud', 'a'])
  bus.subscribe('b')
  t.strictSame(keys(), ['owned', 'read', 'silent', 'loud', 'a', 'b'])
  bus.subscribe('c')
  t.strictSame(keys(), ['owned', 'read', 'loud', 'a', 'b', 'c'])
  bus.subscribe('d')
  t.strictSame(keys(), ['owned', 'read', 'a', 'b', 'c', 'd'])
  for (const make of [() => bus.subscribe('e'), () => bus.publish('e', { data: 1 }), () => bus.topic('e')]) {
    t.throws(make, { code: 'AGT_ERR_BUS_TOPIC_LIMIT', statusCode: 503 })
  }
  bus.publish('a', { data: 'those that are there go on' })
  subscription.close()
  bus.subscribe('e')
  t.strictSame(keys(), ['owned', 'a', 'b', 'c', 'd', 'e'])
})

t.test('the cursor of a topic that went is of another life', async (t) => {
  const bus = makeBus(t, { maxTopics: 1 })
  bus.publish('a', { data: '1' })
  const cursor = `${bus.find('a')?.epoch}.1`
  bus.publish('b', { data: '1' })
  bus.publish('a', { data: 'new' })
  const sink = new Recorder()
  bus.topic('a').attach({ view: lines(), sink, after: cursor })
  t.strictSame(sink.gaps, [{ reason: 'epoch', oldest: 1, last: 1 }])
  t.strictSame(sink.seqs, ['gap', 1])
})

t.test('over the bytes of all topics, whole topics go in the same order, then the growing one loses its own oldest', async (t) => {
  const bus = makeBus(t, { maxTotalBytes: 10_000 })
  const fill = (key: string, events: number): Topic => {
    for (let n = 0; n < events; n++) bus.publish(key, { data: KB })
    return bus.topic(key)
  }
  fill('silent', 2)
  const ended = bus.topic('ended')
  for (let n = 0; n < 2; n++) ended.append({ data: KB })
  ended.end()
  const owned = bus.topic('owned')
  for (let n = 0; n < 2; n++) owned.append({ data: KB })
  const sink = new Recorder(1)
  const read = bus.topic('read', { lifetime: 'use' })
  const attachment = read.attach({ view: { key: 'bare', frame: () => undefined }, sink })
  fill('read', 4)
  t.strictSame([bus.bytes, bus.size], [10_000, 4])
  fill('read', 1)
  t.strictSame([bus.find('ended'), bus.bytes], [undefined, 9_000])
  fill('read', 2)
  t.strictSame([bus.find('silent'), bus.bytes], [undefined, 9_000])
  fill('read', 3)
  t.strictSame([owned.oldest, read.oldest, read.last, bus.bytes], [1, 3, 10, 10_000])
  owned.append({ data: KB })
  t.strictSame([owned.oldest, read.oldest, bus.bytes], [2, 3, 10_000], 'who grows pays')
  attachment.close()
  owned.append({ data: KB })
  t.strictSame([bus.find('read'), owned.oldest, bus.bytes], [undefined, 2, 3_000])
})

t.test('a topic that grows alone loses its own oldest, and its stalled readers are told', async (t) => {
  const bus = makeBus(t, { maxTotalBytes: 10_000 })
  const sink = new Recorder(1)
  const topic = bus.topic('t', { lifetime: 'use' })
  const attachment = topic.attach({ view: lines(), sink })
  for (let n = 0; n < 20; n++) {
    topic.append({ data: KB })
    await delivered()
  }
  t.ok(bus.bytes <= 10_000)
  t.equal(topic.oldest, 17)
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, [1, 'gap', 17, 18, 19, 20])
  t.strictSame(sink.gaps, [{ reason: 'lagged', oldest: 17, last: 20 }])
  attachment.close()
  bus.publish('t', { data: KB })
  t.equal(bus.find('t'), topic, 'a topic never goes for its own event')
})

t.test('readers that keep up are served before the bytes of all topics are cut', async (t) => {
  const bus = makeBus(t, { maxTotalBytes: 3_000 })
  const topic = bus.topic('t')
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  for (let n = 0; n < 20; n++) topic.append({ data: KB })
  await delivered()
  t.strictSame(sink.seqs, range(1, 20))
  t.strictSame(sink.gaps, [])
  t.ok(bus.bytes <= 3_000)
})

t.test('what a lossless reader needs outlasts the limits', async (t) => {
  const bus = makeBus(t, { maxTotalBytes: 3_000, replay: { maxEvents: 2, maxBytes: 2_000 } })
  const topic = bus.topic('t')
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink, lossless: true })
  for (let n = 0; n < 20; n++) {
    topic.append({ data: KB })
    await delivered()
  }
  t.equal(topic.oldest, 2)
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, range(1, 20))
  t.ok(bus.bytes <= 3_000)
})

t.test('a topic goes ttlMs after its end', async (t) => {
  mockTimers(t)
  const bus = makeBus(t, { replay: { ttlMs: 1_000 } })
  const topic = bus.topic('t')
  topic.append({ data: 'e' })
  mock.timers.tick(10_000)
  t.equal(bus.find('t'), topic, 'not while it lives')
  topic.end()
  topic.end()
  mock.timers.tick(999)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  t.strictSame([sink.seqs, sink.ends], [[1], [['complete', 1]]], 'it is replayed')
  mock.timers.tick(1)
  t.strictSame([bus.find('t'), bus.size, bus.bytes], [undefined, 0, 0])
})

t.test('an ended topic waits for those who still read it', async (t) => {
  mockTimers(t)
  const bus = makeBus(t, { replay: { ttlMs: 1_000 } })
  const topic = bus.topic('t')
  const [one, two] = [new Recorder(1), new Recorder(1)]
  const attachment = topic.attach({ view: lines(), sink: one })
  const other = topic.attach({ view: lines(), sink: two })
  topic.append({ data: 'a' })
  await delivered()
  topic.append({ data: 'b' })
  topic.end()
  await delivered()
  mock.timers.tick(1_000)
  t.equal(bus.find('t'), topic)
  other.close()
  one.room = Infinity
  attachment.resume()
  t.strictSame([one.seqs, one.ends], [[1, 2], [['complete', 2]]])
  t.equal(bus.find('t'), undefined)
})

t.test('a topic of use goes when it is silent and unread, after ttlMs at least and twice that at most', async (t) => {
  mockTimers(t)
  const bus = makeBus(t, { replay: { ttlMs: 1_000 } })
  bus.publish('once', { data: 'e' })
  bus.publish('again', { data: 'e' })
  mock.timers.tick(500)
  bus.publish('again', { data: 'e' })
  mock.timers.tick(499)
  t.equal(bus.size, 2)
  mock.timers.tick(1)
  t.strictSame([bus.find('once'), bus.size], [undefined, 1])
  mock.timers.tick(999)
  t.equal(bus.size, 1)
  mock.timers.tick(1)
  t.equal(bus.size, 0)
})

t.test('a silent topic that is read gives its memory back and stays', async (t) => {
  mockTimers(t)
  const bus = makeBus(t, { replay: { ttlMs: 1_000 } })
  const topic = bus.topic('t', { lifetime: 'use' })
  const sink = new Recorder()
  const attachment = topic.attach({ view: lines(), sink })
  topic.append({ data: 'e' })
  await delivered()
  mock.timers.tick(2_000)
  t.strictSame([bus.find('t'), topic.bytes, topic.oldest, topic.last], [topic, 0, 2, 1])
  topic.append({ data: 'f' })
  await delivered()
  t.strictSame(sink.seqs, [1, 2], 'the numbers go on')
  mock.timers.tick(2_000)
  t.equal(bus.find('t'), topic)
  attachment.close()
  t.strictSame([bus.size, bus.bytes], [0, 0], 'gone with its last reader')
})

t.test('a topic that nothing was published to is there as long as somebody listens, without a timer', async (t) => {
  mockTimers(t)
  const bus = makeBus(t)
  const subscriptions = range(1, 100).map((n) => bus.subscribe(`t${n % 10}`))
  t.strictSame([bus.size, bus.bytes], [10, 0])
  for (const subscription of subscriptions) subscription.close()
  t.equal(bus.size, 0)
  bus.subscribe('t', { signal: AbortSignal.abort() })
  t.equal(bus.size, 0)
})

t.test('bad limits are refused by their name', async (t) => {
  for (const options of [
    { maxTopics: 0 }, { maxTopics: 1.5 }, { maxTotalBytes: -1 }, { coalesceMs: -1 }, { sliceMs: NaN }, { replay: { maxEvents: -1 } }, { replay: { maxBytes: Infinity } }, { replay: { ttlMs: 2 ** 31 } }
  ]) t.throws(() => new EventBus(options), { code: 'AGT_ERR_OPTION_INVALID' }, JSON.stringify(options))
  const bus = makeBus(t)
  for (const options of [{ firstSeq: 0 }, { firstSeq: 1.5 }, { coalesceMs: -1 }, { replay: { maxEvents: NaN } }]) {
    t.throws(() => bus.topic('t', options), { code: 'AGT_ERR_OPTION_INVALID' })
  }
  for (const epoch of ['', 'a.b', 'a\nb', 'é', 'x'.repeat(65)]) t.throws(() => bus.topic('t', { epoch }), { code: 'AGT_ERR_BUS_EPOCH' })
  t.equal(bus.size, 0)
})
