import t from 'tap'
import { type BusEvent, type View } from '../../../lib/bus/index.ts'
import { delivered, lines, makeTopic, range, Recorder } from './recorder.ts'

const even = (event: BusEvent): boolean => event.seq % 2 === 0

t.test('a view that leaves events out counts its own predecessors', async (t) => {
  const { topic } = makeTopic(t)
  const [all, some] = [new Recorder(), new Recorder()]
  const attachment = topic.attach({ view: lines({ key: 'even', keep: even }), sink: some })
  topic.attach({ view: lines(), sink: all })
  for (const level of [1, 2, 3, 4, 5]) topic.append({ data: 'e', level })
  await delivered()
  t.equal(some.text, '0>2 e\n2>4 e\n')
  t.equal(all.text, '0>1 e\n1>2 e\n2>3 e\n3>4 e\n4>5 e\n')
  t.equal(attachment.cursor.seq, 5, 'what is left out is passed over')
  t.equal(topic.read(4)[0]?.level, 5)
})

t.test('nothing is written for events that the view leaves out', async (t) => {
  const { topic } = makeTopic(t)
  const sink = new Recorder()
  const attachment = topic.attach({ view: lines({ keep: () => false }), sink })
  for (let n = 0; n < 40; n++) topic.append({ data: 'e' })
  topic.end()
  await delivered()
  t.strictSame(sink.chunks, [])
  t.strictSame(sink.ends, [['complete', 40]])
  t.equal(attachment.lagBytes, 0)
})

t.test('no gap is told where only events that the view leaves out are gone', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 8 } })
  const view = lines({ keep: (event) => event.seq % 20 === 1 })
  const sink = new Recorder(1)
  const attachment = topic.attach({ view, sink })
  topic.append({ data: 'first' })
  await delivered()
  for (let n = 2; n <= 19; n++) topic.append({ data: 'e' })
  await delivered()
  t.equal(topic.oldest, 12)
  const back = new Recorder()
  topic.attach({ view, sink: back, after: { seq: 1 } })
  for (let n = 20; n <= 22; n++) topic.append({ data: 'e' })
  sink.room = Infinity
  attachment.resume()
  await delivered()
  t.equal(sink.text, '0>1 first\n1>21 e\n')
  t.equal(back.text, '1>21 e\n')
  const late = new Recorder()
  topic.attach({ view, sink: late, after: { seq: 0 } })
  t.strictSame(late.gaps, [{ reason: 'trimmed', oldest: 15, last: 22 }], 'event 1 is really gone')
})

t.test('a view that is first used late frames what is kept, once', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 4 } })
  for (let n = 1; n <= 10; n++) topic.append({ data: 'e' })
  const view = lines()
  const [one, two] = [new Recorder(), new Recorder()]
  topic.attach({ view, sink: one, from: 'start' })
  topic.attach({ view, sink: two, after: { seq: 6 } })
  t.equal(two.text, '6>7 e\n7>8 e\n8>9 e\n9>10 e\n')
  t.equal(one.text, `gap\n${two.text}`)
  t.strictSame(view.framed, range(7, 10))
})

t.test('a view that nobody reads frames nothing, and knows afterwards that it has missed something', async (t) => {
  const { topic } = makeTopic(t, { replay: { maxEvents: 4 } })
  const view = lines({ keep: even })
  topic.append({ data: 'e' })
  topic.append({ data: 'e' })
  const first = new Recorder()
  topic.attach({ view, sink: first }).close()
  for (let n = 3; n <= 20; n++) topic.append({ data: 'e' })
  t.strictSame(view.framed, [1, 2])
  const second = new Recorder()
  topic.attach({ view, sink: second, after: { seq: 2 } })
  t.equal(second.text, 'gap\n16>18 e\n18>20 e\n')
  t.strictSame(second.gaps, [{ reason: 'trimmed', oldest: 17, last: 20 }])
  t.strictSame(view.framed, [1, 2, ...range(17, 20)])
})

t.test('views of the same key share one encoding, others have their own', async (t) => {
  const { topic } = makeTopic(t)
  const [a, again, b] = [lines({ key: 'a' }), lines({ key: 'a' }), lines({ key: 'b' })]
  for (const view of [a, again, b]) topic.attach({ view, sink: new Recorder() })
  topic.append({ data: 'e' })
  await delivered()
  t.strictSame([a.framed, again.framed, b.framed], [[1], [], [1]])
})

t.test('a prefix and suffix stand around the data of each frame, for one reader alone', async (t) => {
  const { topic } = makeTopic(t)
  const view: View = { key: 'v', frame: ({ seq, event, data }) => seq === 3 ? undefined : { head: `${event} <`, data, tail: '>\n' } }
  topic.append({ event: 'naïve', data: 'ü1' })
  topic.append({ event: 'plain', data: 'a2' })
  topic.append({ event: 'hidden', data: 'a3' })
  const [bare, wrapped, other] = [new Recorder(), new Recorder(), new Recorder()]
  topic.attach({ view, sink: bare })
  topic.attach({ view, sink: wrapped, wrap: { prefix: '{"id":"€1","result":', suffix: '}' } })
  topic.attach({ view, sink: other, wrap: { prefix: '', suffix: '' } })
  topic.append({ event: '', data: '' })
  topic.append({ event: 'last', data: '😀' })
  await delivered()
  const expected = (prefix: string, suffix: string) =>
    [['naïve', 'ü1'], ['plain', 'a2'], ['', ''], ['last', '😀']].map(([event, data]) => `${event} <${prefix}${data}${suffix}>\n`).join('')
  t.equal(bare.text, expected('', ''))
  t.equal(wrapped.text, expected('{"id":"€1","result":', '}'))
  t.equal(other.text, bare.text)
  t.equal(wrapped.chunks.length, 2, 'one write a delivery')
})

t.test('a wrapped reader is held to the same backpressure', async (t) => {
  const { topic } = makeTopic(t, {}, { replay: { maxEvents: 1_000 } })
  const sink = new Recorder(1)
  const attachment = topic.attach({ view: lines(), sink, wrap: { prefix: '[', suffix: ']' } })
  for (let n = 0; n < 300; n++) topic.append({ data: 'x'.repeat(1_000) })
  await delivered()
  const stalled = sink.seqs
  t.ok(stalled.length < 300)
  sink.room = Infinity
  attachment.resume()
  t.strictSame(sink.seqs, range(1, 300))
  t.equal(sink.text.match(/\[x{1000}\]\n/g)?.length, 300)
})

t.test('a frame may carry bytes', async (t) => {
  const { topic } = makeTopic(t)
  const view: View = { key: 'binary', frame: ({ data }) => ({ head: 'é', data: Uint8Array.from(data, Number), tail: 'ü' }) }
  const [bare, wrapped] = [new Recorder(), new Recorder()]
  topic.attach({ view, sink: bare })
  topic.attach({ view, sink: wrapped, wrap: { prefix: '(', suffix: ')' } })
  topic.append({ data: '123' })
  topic.append({ data: '' })
  topic.append({ data: '9'.repeat(70_000) })
  await delivered()
  const frame = (bytes: number[]) => Buffer.concat([Buffer.from('é'), Buffer.from(bytes), Buffer.from('ü')])
  const nines = Array.from({ length: 70_000 }, () => 9)
  t.ok(Buffer.concat(bare.chunks).equals(Buffer.concat([frame([1, 2, 3]), frame([]), frame(nines)])))
  t.ok(Buffer.concat(wrapped.chunks).equals(Buffer.concat([frame([40, 1, 2, 3, 41]), frame([40, 41]), frame([40, ...nines, 41])])))
})

t.test('text is well formed in every reading, whatever was appended', async (t) => {
  const { topic } = makeTopic(t)
  const [live, replayed] = [new Recorder(), new Recorder()]
  topic.attach({ view: lines(), sink: live })
  const subscription = topic.subscribe()
  for (const data of ['\ud83d', '\ude00!', 'x\ud83d', '\ud83d\ude00', 'a\udc00b']) topic.append({ data })
  await delivered()
  topic.attach({ view: lines(), sink: replayed })
  const expected = ['\ufffd', '\ufffd!', 'x\ufffd', '😀', 'a\ufffdb']
  t.equal(live.text, expected.map((data, index) => `${index}>${index + 1} ${data}\n`).join(''))
  t.equal(replayed.text, live.text)
  t.strictSame(topic.read(0).map((event) => event.data), expected)
  for (const data of expected) t.equal((await subscription.next()).value?.data, data)
})
