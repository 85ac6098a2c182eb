import t from 'tap'
import fc from 'fast-check'
import { type BusEvent, type EventBlock, EventBus, type View } from '../../../lib/bus/index.ts'
import { sseView } from '../../../lib/sse/index.ts'
import { delivered, Recorder } from './recorder.ts'

/** Frames that hold the payload as it is, frames that hold something else, and none at all. */
const VIEWS: readonly View[] = [
  sseView({ key: 'as it is' }),
  { key: 'changed', frame: ({ data }) => ({ head: '<', data: data.toUpperCase(), tail: '>' }) },
  { key: 'some', frame: ({ seq, data }) => seq % 3 === 0 ? undefined : { head: `${seq}:`, data, tail: '\n' } },
  { key: 'bytes', frame: ({ data }) => ({ head: '', data: Buffer.from(data), tail: ';' }) }
]

/** Garbage is gone, and so is the memory that only became free by that. */
async function collected (): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await delivered()
    globalThis.gc?.()
  }
}

const init = fc.record({
  data: fc.oneof({ weight: 6, arbitrary: fc.string({ maxLength: 30 }) }, { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 10 }).map((text) => text.toWellFormed()) },
    { weight: 1, arbitrary: fc.nat(12_000).map((size) => 'x'.repeat(size)) }),
  event: fc.option(fc.constantFrom('a', 'b'), { nil: undefined, freq: 2 }),
  level: fc.option(fc.nat(3), { nil: undefined, freq: 2 }),
  isLine: fc.constant(undefined)
})
const step = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('append' as const), inits: fc.array(init, { minLength: 1, maxLength: 40 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('deliver' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('block' as const), after: fc.nat(300) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('attach' as const), view: fc.nat(VIEWS.length - 1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('detach' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('life' as const), epoch: fc.string({ unit: fc.constantFrom('p', 'q', 'r'), minLength: 3, maxLength: 5 }) }) }
)

t.test('a log reads the same wherever its payloads lie, and blocks that were taken never change', async (t) => {
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.constantFrom(1_000, 40, 5), fc.constantFrom(1e6, 3_000), fc.boolean(), async (steps, maxEvents, maxBytes, isAscii) => {
    const bus = new EventBus({ replay: { maxEvents, maxBytes } })
    const topic = bus.topic('log')
    const model: BusEvent[] = []
    const taken: (readonly [EventBlock, readonly BusEvent[]])[] = []
    const attachments = []
    for (const step of steps) {
      switch (step.kind) {
        case 'append':
          for (const init of step.inits) {
            // One event that is not ASCII has all that are framed with it kept apart.
            const event = isAscii ? { ...init, data: init.data.replace(/[^ -~]/g, '?') } : init
            model.push({ seq: topic.append(event), ...event })
          }
          break
        case 'deliver': await delivered(); break
        case 'attach': attachments.push(topic.attach({ view: VIEWS[step.view] as View, sink: new Recorder() })); break
        case 'detach': attachments.pop()?.close(); break
        case 'life': topic.renew(step.epoch); break
        case 'block': {
          const block = topic.blockAfter(step.after)
          if (block !== undefined) taken.push([block, model.slice(block.firstSeq - 1, block.lastSeq)])
        }
      }
    }
    await delivered()
    const kept = model.slice(topic.oldest - 1)
    t.strictSame(topic.read(0), kept)
    for (let block = topic.blockAfter(0); block !== undefined; block = topic.blockAfter(block.lastSeq)) taken.push([block, model.slice(block.firstSeq - 1, block.lastSeq)])
    topic.end()
    await delivered()
    bus.close()
    for (const [block, events] of taken) {
      t.strictSame([...block], events)
      const { bytes, ends, names, levels } = block.columns
      t.strictSame(Array.from(ends, (end, index) => bytes.toString('utf8', ends[index - 1] ?? 0, end)), events.map(({ data }) => data))
      t.strictSame(Array.from(events, (_, index) => [names?.[index], levels?.[index]]), events.map(({ event, level }) => [event, level]))
      t.equal(block.size, events.reduce((size, { data }) => size + data.length, 0))
      t.strictSame(events.map(({ seq }) => block.sizeAt(seq)), events.map(({ data }) => data.length))
    }
  }), { numRuns: 300 })
})

t.test('what was framed is kept once: 200 characters, their frame and its place take less than twice 200', async (t) => {
  const topic = new EventBus({ replay: { maxEvents: 100_000, maxBytes: 1e9 } }).topic('log')
  topic.attach({ view: sseView(), sink: { write: () => true, gap () {}, end () {} } })
  // Flat strings, each with characters of its own, as they come from a model.
  const line = (n: number): string => Buffer.from(String(n).padStart(200, 'x')).toString('latin1')
  await collected()
  const before = process.memoryUsage()
  for (let n = 0; n < 50_000; n++) topic.append({ data: line(n), isLine: true })
  await collected()
  const after = process.memoryUsage()
  const grown = after.heapUsed - before.heapUsed + after.external - before.external
  t.ok(grown < 380 * 50_000, `${Math.round(grown / 50_000)} bytes an event`)
  t.equal(topic.read(49_999)[0]?.data, line(49_999))
})

t.test('the frames of a log that has ended take no more memory than they have', async (t) => {
  const bus = new EventBus()
  const blocks: EventBlock[] = []
  await collected()
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < 200; n++) {
    const topic = bus.topic(`log-${n}`)
    topic.attach({ view: sseView(), sink: { write: () => true, gap () {}, end () {} } })
    // One slab and a little of the next one.
    for (let seq = 0; seq < 450; seq++) topic.append({ data: 'x'.repeat(130), isLine: true })
    topic.end()
    await delivered()
    for (let block = topic.blockAfter(0); block !== undefined; block = topic.blockAfter(block.lastSeq)) blocks.push(block)
    bus.drop(topic.key)
  }
  await collected()
  const each = (process.memoryUsage().arrayBuffers - before) / 200
  t.ok(each < 90 * 1024, `${Math.round(each / 1024)} KB a log of ${Math.round(450 * 165 / 1024)} KB`)
  t.equal(blocks.at(-1)?.at(450).data, 'x'.repeat(130))
})

t.test('a topic that is short of room frees the frames that nobody reads, and keeps its events', async (t) => {
  const bus = new EventBus({ replay: { maxEvents: 10_000, maxBytes: 600_000 } })
  await collected()
  const before = process.memoryUsage().arrayBuffers
  const topics = Array.from({ length: 50 }, (_, n) => bus.topic(`log-${n}`))
  for (const topic of topics) {
    const reader = topic.attach({ view: sseView(), sink: { write: () => true, gap () {}, end () {} } })
    // Frames of four times their payload.
    for (let seq = 0; seq < 8_000; seq++) topic.append({ data: '0123456789', isLine: true })
    await delivered()
    reader.close()
    topic.append({ data: 'x'.repeat(400_000), isLine: true })
    t.equal(topic.oldest, 1)
    t.equal(topic.bytes, 480_000)
  }
  await collected()
  const each = (process.memoryUsage().arrayBuffers - before) / topics.length
  t.ok(each < 200_000, `${Math.round(each / 1024)} KB a topic outside of the heap`)
  t.strictSame(topics[7]?.read(7_998).map(({ data }) => data.length), [10, 10, 400_000])
})
