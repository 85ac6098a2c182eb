import t from 'tap'
import { type Attachment, type Topic } from '../../../lib/bus/index.ts'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

const KB = 'x'.repeat(1024)

/** A reader that takes one write and no more, while so many events come. */
async function fallBehind (topic: Topic, events: number): Promise<{ readonly sink: Recorder, readonly attachment: Attachment }> {
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink })
  for (let n = 1; n <= events; n++) {
    topic.append({ data: `e${n}` })
    await delivered()
  }
  return { sink, attachment }
}

t.test('a sink that says no is left alone until it resumes, and then gets the rest in one piece', async (t) => {
  const { topic } = makeTopic(t)
  const { sink, attachment } = await fallBehind(topic, 5)
  t.strictSame(sink.seqs, [1])
  t.strictSame(attachment.cursor, { epoch: topic.epoch, seq: 1 })
  t.equal(attachment.lagBytes, Buffer.byteLength('1>2 e2\n2>3 e3\n3>4 e4\n4>5 e5\n'))
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, [1, 2, 3, 4, 5])
  t.equal(sink.chunks.length, 2)
  t.equal(attachment.lagBytes, 0)
  attachment.resume()
  t.equal(sink.chunks.length, 2, 'resuming what does not stall does nothing')
})

t.test('a stalled reader that fell behind what is kept is told, and goes on from the oldest', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 4 } })
  const { sink, attachment } = await fallBehind(topic, 10)
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, [1, 'gap', 7, 8, 9, 10])
  t.strictSame(sink.gaps, [{ reason: 'lagged', oldest: 7, last: 10 }])
})

t.test('a gap that fills the sink stalls it again before the events', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 4 } })
  const { sink, attachment } = await fallBehind(topic, 10)
  sink.room = 1
  attachment.resume()
  t.strictSame(sink.seqs, [1, 'gap'])
  t.equal(attachment.cursor.seq, 6)
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, [1, 'gap', 7, 8, 9, 10])
})

t.test('a snapshot in the place of a gap may reach into what was appended in this tick', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 4 } })
  const { sink, attachment } = await fallBehind(topic, 10)
  topic.append({ data: 'e11' })
  sink.room = Infinity
  sink.answer = () => ({ text: 'snapshot\n', after: 11 })
  attachment.resume()
  topic.append({ data: 'e12' })
  await delivered()
  t.strictSame(sink.seqs, [1, 'snapshot', 12])
})

t.test('a burst larger than what is kept loses nothing for readers that keep up', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 16 } })
  const [one, two] = [new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: one })
  topic.attach({ view: lines({ key: 'other' }), sink: two })
  for (let n = 1; n <= 1_000; n++) topic.append({ data: `e${n}` })
  t.equal(topic.oldest, 985)
  await delivered()
  t.strictSame(one.seqs, range(1, 1_000))
  t.strictSame(two.seqs, range(1, 1_000))
})

t.test('a reader further behind than it may be is cut with a cursor from which it can go on', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink, maxLagBytes: 4 * 1024 })
  for (let n = 1; n <= 4; n++) topic.append({ data: KB })
  await delivered()
  for (let n = 5; n <= 7; n++) topic.append({ data: KB })
  await delivered()
  t.strictSame(sink.ends, [], '3 KB behind is permitted')
  topic.append({ data: KB })
  topic.append({ data: KB })
  await delivered()
  t.strictSame(sink.ends, [['lagged', 4]])
  t.equal(topic.readers, 0)
  attachment.resume()
  attachment.close()
  t.equal(sink.chunks.length, 1)
  const again = new Recorder()
  topic.attach({ view: lines(), sink: again, after: attachment.cursor })
  t.strictSame(again.seqs, range(5, 9))
})

t.test('100 stalled readers hold a cursor each and delay nobody', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 256 }, sliceMs: 60_000 })
  const view = lines()
  const stalled = range(1, 100).map(() => {
    const sink = new Recorder(1)
    return { sink, attachment: topic.attach({ view, sink }) }
  })
  const healthy = new Recorder()
  topic.attach({ view, sink: healthy })
  for (let n = 1; n <= 5_000; n++) {
    topic.append({ data: `e${n}` })
    if (n % 50 === 0) await delivered()
  }
  await delivered()
  t.strictSame(healthy.seqs, range(1, 5_000))
  t.ok(topic.bytes < 64 * 1024, 'no more is kept than without them')
  for (const { sink, attachment } of stalled) {
    t.strictSame(sink.seqs, range(1, 50))
    sink.room = Infinity
    attachment.resume()
    t.strictSame(sink.seqs, [...range(1, 50), 'gap', ...range(4_745, 5_000)])
    t.strictSame(sink.gaps, [{ reason: 'lagged', oldest: 4_745, last: 5_000 }])
  }
})

t.test('the owner waits for a lossless reader that is 64 KB behind', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 8 } })
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink, lossless: true, upTo: 'last' })
  t.equal(topic.ready(), undefined)
  let appended = 0
  while (topic.ready() === undefined) {
    topic.append({ data: KB })
    appended++
    if (appended % 5 === 0) await delivered()
  }
  t.ok(attachment.lagBytes >= 64 * 1024)
  t.ok(attachment.lagBytes < 96 * 1024)
  const ready = topic.ready()
  t.equal(topic.ready(), ready, 'one wait for all who ask')
  t.equal(topic.oldest, attachment.cursor.seq + 1, 'nothing that it needs is gone')
  sink.room = Infinity
  attachment.resume()
  await ready
  t.equal(topic.ready(), undefined)
  t.strictSame(sink.seqs, range(1, appended))
  t.strictSame(sink.gaps, [])
  t.equal(topic.oldest, topic.last - 7, 'what it held back goes')
})

t.test('the owner waits for the slowest of several, and no longer than they are there', async (t) => {
  const { topic } = makeTopic(t)
  const view = lines()
  const [slow, slower] = [new Recorder(1), new Recorder(1)]
  const one = topic.attach({ view, sink: slow, lossless: true })
  const two = topic.attach({ view, sink: slower, lossless: true })
  topic.attach({ view, sink: new Recorder(1) })
  for (let n = 0; n < 100; n++) topic.append({ data: KB })
  const ready = topic.ready()
  let isReady = false
  const waited = ready?.then(() => { isReady = true })
  slow.room = Infinity
  one.resume()
  await delivered()
  t.equal(isReady, false)
  two.close()
  await waited
  t.equal(isReady, true)
  t.equal(topic.ready(), undefined)
})

t.test('a lossless reader with a limit is cut at it, and the owner goes on', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder(1)
  topic.attach({ view: lines(), sink, lossless: true, maxLagBytes: 100 * 1024 })
  for (let n = 0; n < 110; n++) topic.append({ data: KB })
  const ready = topic.ready()
  t.ok(ready)
  for (let n = 0; n < 100; n++) topic.append({ data: KB })
  await ready
  t.strictSame(sink.ends, [['lagged', 32]])
  t.equal(topic.ready(), undefined)
})
