import t, { type Test } from 'tap'
import { type Cursor, EventBus, type Gap, type Topic } from '../../../lib/bus/index.ts'
import { delivered, lines, range, Recorder } from './recorder.ts'

function fortyOfWhichSixteenAreKept (t: Test): Topic {
  const bus = new EventBus({ replay: { maxEvents: 16 } })
  t.teardown(() => bus.close())
  const topic = bus.topic('forty', { epoch: 'now' })
  for (let n = 1; n <= 40; n++) topic.append({ data: `e${n}` })
  return topic
}

function read (topic: Topic, after: Cursor | string | undefined, from?: 'live' | 'start'): { seqs: (number | string)[], gaps: Gap[] } {
  const sink = new Recorder()
  topic.attach({ view: lines(), sink, after, from }).close()
  return { seqs: sink.seqs, gaps: sink.gaps }
}

t.test('at the edge of what is kept, a cursor is honoured or answered by a gap', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  t.equal(topic.oldest, 25)
  t.equal(topic.last, 40)
  const kept = range(25, 40)
  const gap = (reason: Gap['reason']) => ({ seqs: ['gap', ...kept], gaps: [{ reason, oldest: 25, last: 40 }] })

  t.strictSame(read(topic, { seq: 24 }), { seqs: kept, gaps: [] }, '24 has missed nothing')
  t.strictSame(read(topic, { seq: 23 }), gap('trimmed'), '23 has missed event 24')
  t.strictSame(read(topic, { seq: 25 }), { seqs: range(26, 40), gaps: [] })
  t.strictSame(read(topic, { seq: 40 }), { seqs: [], gaps: [] }, '40 waits for what comes')
  t.strictSame(read(topic, { seq: 41 }), gap('ahead'), '41 has never been')
  t.strictSame(read(topic, { seq: 0 }), gap('trimmed'))
  t.strictSame(read(topic, undefined), gap('trimmed'), 'without a cursor from the start, which is gone')
  t.strictSame(read(topic, undefined, 'live'), { seqs: [], gaps: [] }, 'without a cursor, live')
})

t.test('a reader that waits at the head gets the next event, also after a gap', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  const sinks = [40, 41, 23].map((seq) => {
    const sink = new Recorder()
    topic.attach({ view: lines(), sink, after: { seq } })
    return sink
  })
  topic.append({ data: 'e41' })
  await delivered()
  t.strictSame(sinks.map((sink) => sink.seqs), [[41], ['gap', ...range(25, 41)], ['gap', ...range(25, 41)]])
})

t.test('a cursor of another life is never matched by its number', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  const kept = range(25, 40)
  t.strictSame(read(topic, 'now.30').seqs, range(31, 40))
  t.strictSame(read(topic, { epoch: 'now', seq: 30 }).seqs, range(31, 40))
  t.strictSame(read(topic, 'then.30'), { seqs: ['gap', ...kept], gaps: [{ reason: 'epoch', oldest: 25, last: 40 }] })
  t.strictSame(read(topic, { epoch: 'then', seq: 40 }).gaps, [{ reason: 'epoch', oldest: 25, last: 40 }])
})

t.test('a cursor that is none is told so, and everything kept follows', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  for (const after of ['', 'x', '-1', '1e1', 'now.', '01', 'now.9007199254740992', { seq: -1 }, { seq: 1.5 }, { seq: NaN }]) {
    t.strictSame(read(topic, after), { seqs: ['gap', ...range(25, 40)], gaps: [{ reason: 'invalid', oldest: 25, last: 40 }] }, JSON.stringify(after))
  }
})

t.test('an empty topic honours the start and knows no later cursor', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const topic = bus.topic('empty')
  t.strictSame([topic.oldest, topic.last], [1, 0])
  t.strictSame(read(topic, { seq: 0 }), { seqs: [], gaps: [] })
  t.strictSame(read(topic, undefined), { seqs: [], gaps: [] })
  t.strictSame(read(topic, { seq: 1 }), { seqs: ['gap'], gaps: [{ reason: 'ahead', oldest: 1, last: 0 }] })
})

t.test('a topic that goes on from another node knows that it does not hold the beginning', async (t) => {
  const bus = new EventBus()
  t.teardown(() => bus.close())
  const topic = bus.topic('taken over', { epoch: 'same', firstSeq: 101 })
  t.strictSame([topic.oldest, topic.last, topic.stored], [101, 100, 100])
  t.equal(topic.append({ data: 'next' }), 101)
  t.strictSame(read(topic, 'same.100'), { seqs: [101], gaps: [] })
  t.strictSame(read(topic, 'same.99'), { seqs: ['gap', 101], gaps: [{ reason: 'trimmed', oldest: 101, last: 101 }] })
})

t.test('a gap is answered by nothing, by text, or by a snapshot behind which reading goes on', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  const answered = (answer: Recorder['answer']): (number | string)[] => {
    const sink = new Recorder()
    sink.answer = answer
    topic.attach({ view: lines(), sink, after: { seq: 3 } }).close()
    return sink.seqs
  }
  t.strictSame(answered(() => undefined), range(25, 40))
  t.strictSame(answered(() => ''), range(25, 40))
  t.strictSame(answered(({ oldest, last }) => `${oldest}-${last}\n`), ['25-40', ...range(25, 40)])
  t.strictSame(answered(() => ({ text: 'snapshot\n', after: 38 })), ['snapshot', 39, 40])
  t.strictSame(answered(() => ({ text: 'snapshot\n', after: 3 })), ['snapshot', ...range(25, 40)], 'not before what is kept')
  t.strictSame(answered(() => ({ text: 'snapshot\n', after: 99 })), ['snapshot'], 'not beyond the last')
})

t.test('a reader that closes inside its gap gets nothing more', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink, after: { seq: 40 } })
  topic.append({ data: 'stalls' })
  await delivered()
  for (let n = 0; n < 20; n++) topic.append({ data: 'more' })
  await delivered()
  sink.answer = () => {
    attachment.close()
    return 'not written\n'
  }
  attachment.resume()
  t.strictSame(sink.seqs, [41])
  t.strictSame(sink.gaps, [{ reason: 'lagged', oldest: 46, last: 61 }])
  t.strictSame(sink.ends, [])
})

t.test('what is published while 20 clients replay reaches each of them once, in order', async (t) => {
  const bus = new EventBus({ replay: { maxEvents: 1_000 } })
  t.teardown(() => bus.close())
  const topic = bus.topic('busy')
  const big = 'x'.repeat(1_000)
  for (let n = 1; n <= 200; n++) topic.append({ data: big })
  const clients = range(0, 19).map((n) => {
    const after = n * 10
    const sink = new Recorder(1) // takes one chunk, then drains slowly
    return { after, sink, attachment: topic.attach({ view: lines(), sink, after: { seq: after } }) }
  })
  for (let n = 201; n <= 300; n++) {
    topic.append({ data: big })
    const { sink, attachment } = clients[n % 20] as typeof clients[number]
    sink.room = 1
    attachment.resume()
    if (n % 7 === 0) await delivered()
  }
  topic.end()
  await delivered()
  for (const { sink, attachment } of clients) {
    sink.room = Infinity
    attachment.resume()
  }
  for (const { after, sink } of clients) {
    t.strictSame(sink.seqs, range(after + 1, 300))
    t.strictSame(sink.gaps, [])
    t.strictSame(sink.ends, [['complete', 300]])
  }
})

t.test('reads events as objects', async (t) => {
  const topic = fortyOfWhichSixteenAreKept(t)
  t.strictSame(topic.read(38).map(({ seq, data }) => ({ seq, data })), [{ seq: 39, data: 'e39' }, { seq: 40, data: 'e40' }])
  t.strictSame(topic.read(0, 2).map((event) => event.seq), [25, 26])
  t.strictSame(topic.read(40), [])
  t.strictSame(topic.read(99), [])
})
