import t from 'tap'
import { EventBus } from '../../../lib/bus/index.ts'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

t.test('a large fan-out is sliced, and the event loop has its turn between', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 0 })
  const view = lines()
  const sinks = range(1, 1_000).map(() => new Recorder())
  for (const sink of sinks) topic.attach({ view, sink })
  topic.append({ data: 'a' })
  const served: number[] = []
  do {
    await delivered()
    served.push(sinks.filter((sink) => sink.chunks.length > 0).length)
  } while (served.at(-1) !== 1_000)
  t.ok(served.length > 10, 'in many turns')
  t.ok(served.every((count, index) => index === 0 || count > (served[index - 1] ?? 0)), 'each with some')
  t.ok(sinks.every((sink) => sink.text === '0>1 a\n'))
})

t.test('what comes during a sliced pass reaches everybody once', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 0 }, { replay: { maxEvents: 1_000 } })
  const view = lines()
  const sinks = range(1, 300).map(() => new Recorder())
  for (const sink of sinks) topic.attach({ view, sink })
  for (let n = 1; n <= 100; n++) {
    topic.append({ data: `e${n}` })
    if (n % 2 === 0) await delivered()
  }
  topic.end()
  while (topic.readers > 0) await delivered()
  const expected = range(1, 100)
  for (const sink of sinks) {
    t.strictSame(sink.seqs, expected)
    t.strictSame(sink.ends, [['complete', 100]])
  }
})

t.test('readers may come and go between slices', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 0 })
  const view = lines()
  const sinks = range(0, 299).map(() => new Recorder())
  const attachments = sinks.map((sink) => topic.attach({ view, sink }))
  topic.append({ data: 'a' })
  await new Promise<void>((resolve) => process.nextTick(resolve))
  t.equal(sinks.filter((sink) => sink.chunks.length > 0).length, 64)
  for (let index = 0; index < 300; index += 3) attachments[index]?.close()
  const newcomer = new Recorder()
  topic.attach({ view, sink: newcomer })
  topic.append({ data: 'b' })
  while (!sinks.every((sink, index) => index % 3 === 0 || sink.seqs.length === 2)) await delivered()
  await delivered()
  t.strictSame(newcomer.seqs, [1, 2])
  sinks.forEach((sink, index) => {
    t.strictSame(sink.seqs, index % 3 !== 0 ? [1, 2] : index < 64 ? [1] : [])
  })
  t.equal(topic.readers, 201)
})

t.test('everybody may go between slices', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 0 })
  const view = lines()
  const attachments = range(0, 299).map(() => topic.attach({ view, sink: new Recorder() }))
  topic.append({ data: 'a' })
  await new Promise<void>((resolve) => process.nextTick(resolve))
  for (const attachment of attachments) attachment.close()
  t.equal(topic.readers, 0)
  for (let n = 0; n < 5; n++) await delivered()
  const sink = new Recorder()
  topic.attach({ view, sink })
  topic.append({ data: 'b' })
  await delivered()
  t.strictSame(sink.seqs, [1, 2])
})

t.test('a burst during a sliced pass does not overtake readers that keep up', async (t) => {
  const { topic } = makeTopic(t, { sliceMs: 0, replay: { maxEvents: 8 } })
  const view = lines()
  const sinks = range(1, 200).map(() => new Recorder())
  for (const sink of sinks) topic.attach({ view, sink })
  topic.append({ data: 'e' })
  await new Promise<void>((resolve) => process.nextTick(resolve))
  for (let n = 2; n <= 50; n++) topic.append({ data: 'e' })
  t.equal(topic.oldest, 43)
  while (!sinks.every((sink) => sink.seqs.at(-1) === 50)) await delivered()
  for (const sink of sinks) t.strictSame(sink.seqs, range(1, 50))
})

t.test('topics share a slice and all get their turn', async (t) => {
  const bus = new EventBus({ sliceMs: 0 })
  t.teardown(() => bus.close())
  const rooms = range(1, 5).map((n) => {
    const topic = bus.topic(`t${n}`)
    const view = lines()
    const sinks = range(1, 100).map(() => new Recorder())
    for (const sink of sinks) topic.attach({ view, sink })
    return { topic, sinks }
  })
  for (const { topic } of rooms) topic.append({ data: 'a' })
  await delivered()
  for (const { topic } of rooms) topic.append({ data: 'b' })
  while (!rooms.every(({ sinks }) => sinks.every((sink) => sink.seqs.length === 2))) await delivered()
  t.ok(rooms.every(({ sinks }) => sinks.every((sink) => sink.text === '0>1 a\n1>2 b\n')))
})
