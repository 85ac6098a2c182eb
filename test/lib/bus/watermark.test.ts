import t from 'tap'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

t.test('readers see what is stored, who reads ahead sees what is appended', async (t) => {
  const { topic } = makeTopic(t, {}, { watermark: 'manual' })
  const [ahead, stored] = [new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: ahead, upTo: 'last' })
  const attachment = topic.attach({ view: lines(), sink: stored })
  for (let n = 1; n <= 5; n++) topic.append({ data: `e${n}` })
  await delivered()
  t.strictSame([ahead.seqs, stored.seqs], [range(1, 5), []])
  t.equal(attachment.lagBytes, 0, 'what it may not see is not its lag')
  topic.markStored(3)
  await delivered()
  t.strictSame([ahead.seqs, stored.seqs], [range(1, 5), [1, 2, 3]])
  topic.markStored(2)
  topic.markStored(6)
  t.equal(topic.stored, 3, 'neither back nor beyond what there is')
  topic.markStored(5)
  await delivered()
  t.strictSame(stored.seqs, range(1, 5))
})

t.test('every event of a topic without a manual watermark counts as stored', async (t) => {
  const { topic } = makeTopic(t)
  topic.append({ data: 'a' })
  t.equal(topic.stored, 1)
  topic.markStored(1)
  t.equal(topic.stored, 1)
})

t.test('a reader that comes later, live or with a cursor ahead of the store, misses nothing', async (t) => {
  const { topic } = makeTopic(t, {}, { watermark: 'manual' })
  for (let n = 1; n <= 5; n++) topic.append({ data: `e${n}` })
  topic.markStored(2)
  const [live, liveAhead, start, cursor, beyond] = [new Recorder(), new Recorder(), new Recorder(), new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: live, from: 'live' })
  topic.attach({ view: lines(), sink: liveAhead, from: 'live', upTo: 'last' })
  topic.attach({ view: lines(), sink: start })
  topic.attach({ view: lines(), sink: cursor, after: { seq: 4 } })
  topic.attach({ view: lines(), sink: beyond, after: { seq: 6 } })
  t.strictSame(beyond.gaps, [{ reason: 'ahead', oldest: 1, last: 2 }])
  topic.markStored(5)
  topic.append({ data: 'e6' })
  await delivered()
  t.strictSame([live, liveAhead, start, cursor, beyond].map((sink) => sink.seqs), [[3, 4, 5], [6], range(1, 5), [5], ['gap', ...range(1, 5)]])
  topic.markStored(6)
  await delivered()
  t.strictSame(cursor.seqs, [5, 6])
})

t.test('nothing is dropped before it is stored', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 2 } }, { watermark: 'manual' })
  const dropped: number[][] = []
  topic.onTrim = (from, to) => dropped.push([from, to])
  const sink = new Recorder()
  topic.attach({ view: lines(), sink })
  for (let n = 1; n <= 10; n++) topic.append({ data: `e${n}` })
  await delivered()
  t.equal(topic.oldest, 1)
  topic.markStored(6)
  t.strictSame(sink.seqs, range(1, 6), 'readers that keep up get it first')
  t.equal(topic.oldest, 7)
  topic.markStored(10)
  await delivered()
  t.strictSame(sink.seqs, range(1, 10))
  t.strictSame(dropped, [[1, 6], [7, 8]])
})

t.test('the end waits for the store', async (t) => {
  const { topic } = makeTopic(t, {}, { watermark: 'manual' })
  const [ahead, stored] = [new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: ahead, upTo: 'last' })
  topic.attach({ view: lines(), sink: stored })
  topic.append({ data: 'a' })
  topic.end()
  await delivered()
  t.strictSame([ahead.ends, stored.ends], [[['complete', 1]], []])
  topic.markStored(1)
  await delivered()
  t.strictSame([stored.seqs, stored.ends], [[1], [['complete', 1]]])
})

t.test('tells what is about to go while it is still there', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 3 } })
  const seen: string[][] = []
  topic.onTrim = (from, to) => seen.push(topic.read(from - 1, to - from + 1).map((event) => event.data))
  for (let n = 1; n <= 5; n++) topic.append({ data: `e${n}` })
  t.strictSame(seen, [['e1'], ['e2']])
})
