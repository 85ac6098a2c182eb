import t from 'tap'
import { mock } from 'node:test'
import { EventBus } from '../../../lib/bus/index.ts'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

t.test('what is appended in one tick leaves as one write on the next', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  t.strictSame([1, 2, 3].map((n) => topic.append({ event: `n${n}`, data: String(n) })), [1, 2, 3])
  t.strictSame(sink.chunks, [])
  await new Promise<void>((resolve) => process.nextTick(resolve))
  t.equal(sink.text, '0>1 n1 1\n1>2 n2 2\n2>3 n3 3\n')
  t.equal(sink.chunks.length, 1)
})

t.test('32 KB leave at once', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  for (let n = 0; n < 31; n++) topic.append({ data: 'x'.repeat(1024) })
  t.equal(sink.chunks.length, 0)
  topic.append({ data: 'x'.repeat(1024) })
  t.strictSame(sink.seqs, range(1, 32))
  await delivered()
  t.strictSame(sink.seqs, range(1, 32), 'and not again')
})

t.test('256 events that lie in the log are replayed by one write, without a copy for each reader', async (t) => {
  const { topic } = makeTopic(t)
  const view = lines()
  for (let n = 0; n < 300; n++) topic.append({ data: 'x'.repeat(100) })
  const [one, two] = [new Recorder(), new Recorder()]
  topic.attach({ view, sink: one, after: { seq: 44 } })
  topic.attach({ view, sink: two, after: { seq: 44 } })
  t.strictSame(one.seqs, range(45, 300))
  t.equal(one.chunks.length, 1)
  t.equal(two.chunks[0], one.chunks[0], 'the same bytes')
  t.strictSame(view.framed, range(45, 300), 'each framed once')
})

t.test('a thousand readers are given the same bytes', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 60_000 })
  const view = lines()
  const sinks = range(1, 1_000).map(() => new Recorder())
  for (const sink of sinks) topic.attach({ view, sink })
  topic.append({ data: 'once' })
  await delivered()
  t.strictSame(view.framed, [1])
  t.equal(new Set(sinks.map((sink) => sink.chunks[0])).size, 1)
  t.ok(sinks.every((sink) => sink.text === '0>1 once\n'))
})

t.test('bytes that were handed out never change, however far the log goes on', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 8 } })
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  const copies: Buffer[] = []
  sink.onWrite = () => copies.push(Buffer.from(sink.chunks.at(-1) ?? []))
  for (let n = 0; n < 400; n++) {
    topic.append({ data: String(n).repeat(1 + n * 2) })
    if (n % 3 === 0) await delivered()
  }
  await delivered()
  t.strictSame(sink.chunks.map((chunk) => Buffer.from(chunk)), copies)
  t.strictSame(sink.seqs, range(1, 400))
})

t.test('frames of any size, ASCII or not, come out as they went in', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 1_000, maxBytes: 1e8 } })
  const live = new Recorder()
  topic.attach({ view: lines(), sink: live })
  const sizes = [0, 1, 100, 4_095, 4_096, 5_000, 21_840, 21_845, 32_768, 65_500, 65_536, 70_000, 200_000, 3]
  const payloads = sizes.flatMap((size) => ['x'.repeat(size), 'é'.repeat(size), '世'.repeat(size), '😀'.repeat(size)])
  payloads.forEach((data) => topic.append({ data }))
  await delivered()
  const expected = payloads.map((data, index) => `${index}>${index + 1} ${data}\n`).join('')
  t.ok(live.text === expected)
  const replayed = new Recorder()
  topic.attach({ view: lines(), sink: replayed })
  t.ok(replayed.text === expected)
})

t.test('a window gathers what comes within it', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { topic } = makeTopic(t, { coalesceMs: 25 })
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  topic.append({ data: 'a' })
  await delivered()
  mock.timers.tick(24)
  topic.append({ data: 'b' })
  t.strictSame(sink.seqs, [])
  mock.timers.tick(1)
  t.strictSame(sink.seqs, [1, 2])
  t.equal(sink.chunks.length, 1)
  topic.append({ data: 'c' })
  topic.end()
  await delivered()
  t.strictSame(sink.seqs, [1, 2, 3], 'the end does not wait for the window')
  t.strictSame(sink.ends, [['complete', 3]])
})

t.test('a topic overrides the window of its bus, and 32 KB do not wait for it', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const bus = new EventBus({ coalesceMs: 25 })
  t.teardown(() => bus.close())
  const [now, later] = [new Recorder(), new Recorder()]
  const quick = bus.topic('quick', { coalesceMs: 0 })
  quick.attach({ view: lines(), sink: now })
  quick.append({ data: 'a' })
  const slow = bus.topic('slow')
  slow.attach({ view: lines(), sink: later })
  slow.append({ data: 'x'.repeat(32 * 1024) })
  t.strictSame(later.seqs, [1])
  mock.timers.tick(25)
  t.strictSame(later.seqs, [1])
  await delivered()
  t.strictSame(now.seqs, [1])
})

t.test('an owner may append from inside a write', async (t) => {
  const { topic } = makeTopic(t, {}, { replay: { maxEvents: 4 } })
  const [first, second] = [new Recorder(), new Recorder()]
  first.onWrite = () => { if (topic.last < 60) for (let n = 0; n < 10; n++) topic.append({ data: 'x'.repeat(8_000) }) }
  topic.attach({ view: lines(), sink: first })
  topic.attach({ view: lines(), sink: second })
  topic.append({ data: 'start' })
  while (second.seqs.at(-1) !== 61) await delivered()
  t.strictSame(first.seqs, range(1, 61))
  t.strictSame(second.seqs, range(1, 61))
  t.equal(topic.oldest, 58)
})

t.test('what its owner holds back is delivered when he lets it, to bytes and objects alike, whole and once', async (t) => {
  const { topic } = makeTopic(t)
  let isCertain = true
  topic.mayDeliver = () => isCertain
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  const seen: unknown[] = []
  const reading = (async () => { for await (const item of topic.subscribe({ signal: AbortSignal.timeout(60_000) })) if (seen.push('id' in item ? item.id : item) === 2) break })()
  topic.append({ data: 'a' })
  await delivered()
  isCertain = false
  topic.append({ data: 'b' })
  for (let n = 0; n < 40; n++) topic.append({ data: 'x'.repeat(1024) })
  const late = new Recorder()
  topic.attach({ view: lines(), sink: late })
  await delivered()
  t.strictSame(sink.seqs, [1], 'not even the 32 KB that leave at once')
  t.strictSame(late.seqs, [], 'nor what is replayed')
  t.equal(seen.length, 1)
  isCertain = true
  topic.wake()
  await delivered()
  t.strictSame(sink.seqs, range(1, 42))
  t.strictSame(late.seqs, range(1, 42))
  await reading
  t.strictSame(seen, [`${topic.epoch}.1`, `${topic.epoch}.2`])
})

t.test('readers that are sent away may come again, and the topic goes on', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  topic.append({ data: 'a' })
  await delivered()
  topic.endReaders()
  t.strictSame([sink.seqs, sink.ends, topic.readers], [[1], [['closed', 1]], 0])
  topic.append({ data: 'b' })
  const again = new Recorder()
  topic.attach({ view: lines(), sink: again, after: { seq: 1 } })
  await delivered()
  t.strictSame(again.seqs, [2])
  t.strictSame(sink.seqs, [1])
})
