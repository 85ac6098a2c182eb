import fc from 'fast-check'
import t from 'tap'
import { type BusEvent, formatCursor, type Position, type Topic, type View } from '../../../lib/bus/index.ts'
import { collect, delivered, makeTopic, Recorder } from './recorder.ts'

/** Ids as a client sees them. */
const ids: View = {
  key: 'ids',
  frame: ({ seq, data }: BusEvent, { epoch }: Position) => ({ head: `${formatCursor(epoch, seq)} `, data, tail: '\n' })
}

function read (topic: Topic, after?: string): { readonly lines: string[], readonly gap: string | undefined, readonly cursor: string } {
  const sink = new Recorder()
  sink.answer = () => undefined
  const attachment = topic.attach({ view: ids, sink, ...after === undefined ? { from: 'start' } : { after } })
  const { epoch = '', seq } = attachment.cursor
  attachment.close()
  return { lines: sink.text.split('\n').slice(0, -1), gap: sink.gaps[0]?.reason, cursor: formatCursor(epoch, seq) }
}

t.test('an event keeps the id of the life that it was appended in', async (t) => {
  const { topic } = makeTopic(t, {}, { epoch: 'a' })
  const live = new Recorder()
  topic.attach({ view: ids, sink: live, from: 'start' })
  topic.append({ data: '1' })
  topic.append({ data: '2' })
  topic.renew('a-2') // before anything of it was delivered
  t.equal(topic.epoch, 'a-2')
  topic.append({ data: '3' })
  await delivered()
  topic.renew('a-3')
  topic.append({ data: '4' })
  await delivered()
  const lines = ['a.1 1', 'a.2 2', 'a-2.3 3', 'a-3.4 4']
  t.equal(live.text, lines.map((line) => `${line}\n`).join(''))
  t.strictSame(read(topic), { lines, gap: undefined, cursor: 'a-3.4' })
  t.strictSame(['a', 'a-2', 'a-3', 'b'].map((epoch) => topic.lastOf(epoch)), [2, 3, 4, undefined])
  t.strictSame([0, 1, 2, 3, 4, 5].map((seq) => topic.epochAt(seq)), ['a', 'a', 'a', 'a-2', 'a-3', 'a-3'])
  const items = topic.subscribe({ from: 'start' })
  topic.end()
  t.strictSame((await collect(items)).map(({ id, data }) => `${id} ${data}`), lines)
})

t.test('a cursor beyond the end of its life is ahead, whatever was appended in its place', async (t) => {
  const { topic } = makeTopic(t, {}, { epoch: 'a' })
  topic.append({ data: '1' })
  topic.append({ data: '2' })
  topic.renew('a-2')
  for (const data of ['3', '4', '5']) topic.append({ data })
  const all = ['a.1 1', 'a.2 2', 'a-2.3 3', 'a-2.4 4', 'a-2.5 5']
  t.strictSame(read(topic, 'a.2'), { lines: all.slice(2), gap: undefined, cursor: 'a-2.5' }, 'its last event')
  t.strictSame(read(topic, 'a.3'), { lines: all, gap: 'ahead', cursor: 'a-2.5' }, 'one that was never kept')
  t.strictSame(read(topic, 'a-2.3'), { lines: all.slice(3), gap: undefined, cursor: 'a-2.5' })
  t.strictSame(read(topic, 'a-2.1'), { lines: all.slice(1), gap: undefined, cursor: 'a-2.5' }, 'what went before was known when it began')
  t.strictSame(read(topic, 'a-2.6').gap, 'ahead')
  t.strictSame(read(topic, 'a-3.4').gap, 'epoch')
  t.strictSame(read(topic, '3'), { lines: all.slice(3), gap: undefined, cursor: 'a-2.5' }, 'without an epoch the sequence counts alone')
  const gap = await topic.subscribe({ after: 'a.3' }).next()
  t.strictSame(gap.value, { id: 'a.0', event: 'gap', data: '{"oldest":1}' })
})

t.test('a life without events is forgotten, and none is begun twice', async (t) => {
  const { topic } = makeTopic(t, {}, { epoch: 'a' })
  topic.renew('a-2')
  topic.append({ data: '1' })
  topic.renew('a-3')
  topic.renew('a-4')
  topic.renew('a-2')
  topic.renew('a-4')
  topic.append({ data: '2' })
  t.strictSame(read(topic).lines, ['a-2.1 1', 'a-4.2 2'])
  t.strictSame(['a', 'a-2', 'a-3', 'a-4'].map((epoch) => topic.lastOf(epoch)), [undefined, 1, undefined, 2])
  t.throws(() => { topic.renew('not.one') }, { code: 'AGT_ERR_BUS_EPOCH' })
})

t.test('a log that is read back without its beginning knows the lives of what is gone', async (t) => {
  const { topic } = makeTopic(t, {}, { epoch: 'a', firstSeq: 8 })
  topic.renew('a-2', 3)
  topic.renew('a-3', 6)
  topic.append({ data: '8' })
  topic.renew('a-4', 2) // too late to be believed
  topic.append({ data: '9' })
  t.strictSame(['a', 'a-2', 'a-3', 'a-4'].map((epoch) => topic.lastOf(epoch)), [2, 5, 8, 9])
  t.strictSame(read(topic, 'a-3.7'), { lines: ['a-3.8 8', 'a-4.9 9'], gap: undefined, cursor: 'a-4.9' })
  t.strictSame(read(topic, 'a-2.5').gap, 'trimmed')
  t.strictSame(read(topic, 'a-2.7').gap, 'ahead')
  const { topic: empty } = makeTopic(t, {}, { epoch: 'b', firstSeq: 8 })
  empty.renew('b-2', 20)
  t.strictSame([empty.lastOf('b'), empty.lastOf('b-2')], [7, 7], 'it begins with the next event at the latest')
})

t.test('who is refused keeps a cursor of the right life', async (t) => {
  const { bus, topic } = makeTopic(t, {}, { epoch: 'a' })
  topic.append({ data: '1' })
  topic.renew('a-2')
  bus.endReaders()
  const sink = new Recorder()
  t.strictSame(topic.attach({ view: ids, sink, from: 'live' }).cursor, { epoch: 'a', seq: 1 })
  topic.append({ data: '2' })
  t.strictSame(topic.attach({ view: ids, sink, from: 'live' }).cursor, { epoch: 'a-2', seq: 2 })
  t.strictSame(topic.attach({ view: ids, sink, from: 'start' }).cursor, { epoch: 'a', seq: 0 })
})

t.test('any lives: every cursor is honoured up to the end of its own life, and no further', async (t) => {
  const step = fc.oneof(fc.record({ kind: fc.constant('append' as const), count: fc.nat(6) }), fc.constant({ kind: 'renew' as const }), fc.constant({ kind: 'deliver' as const }))
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 14 }), fc.constantFrom(1_000, 5), async (steps, maxEvents) => {
    const { topic, bus } = makeTopic(t, { replay: { maxEvents } }, { epoch: 'e' })
    const live = new Recorder()
    topic.attach({ view: ids, sink: live, from: 'start' })
    const epochs: string[] = ['e'] // of each sequence; 0 is before the first
    let count = 0
    let present = 'e'
    for (const one of steps) {
      if (one.kind === 'renew') topic.renew(present = `e-${++count}`)
      else if (one.kind === 'deliver') await delivered()
      else for (let index = 0; index < one.count; index++) topic.append({ data: String(epochs.push(present) - 1) })
    }
    await delivered()
    const last = epochs.length - 1
    const lines = epochs.map((epoch, seq) => `${epoch}.${seq} ${seq}`)
    if (live.text !== lines.slice(1).map((line) => `${line}\n`).join('')) return false
    for (const epoch of ['e', ...Array.from({ length: count }, (_, index) => `e-${index + 1}`)]) {
      const end = epoch === present ? last : epochs.lastIndexOf(epoch, last)
      const isKnown = epoch === present || epochs.slice(1).includes(epoch)
      for (let seq = 0; seq <= last + 2; seq++) {
        const gap = !isKnown ? 'epoch' : seq > end ? 'ahead' : seq < topic.oldest - 1 ? 'trimmed' : undefined
        const got = read(topic, `${epoch}.${seq}`)
        if (got.gap !== gap || got.lines.join() !== lines.slice(gap === undefined ? seq + 1 : topic.oldest).join()) return false
      }
    }
    bus.close()
    return true
  }), { numRuns: 150 })
})
