import t from 'tap'
import fc from 'fast-check'
import { type BusEvent, EventBus, EventList } from '../../../lib/bus/index.ts'
import { sseView } from '../../../lib/sse/index.ts'

const payload = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.toWellFormed())
const init = fc.record({
  data: payload,
  event: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
  level: fc.option(fc.nat(3), { nil: undefined })
})

t.test('a block holds its events as they were, few or many, of any text', async (t) => {
  fc.assert(fc.property(fc.nat(1_000), fc.array(init, { minLength: 1, maxLength: 40 }), fc.boolean(), (offset, inits, isLine) => {
    const events: BusEvent[] = inits.map((event, index) => ({ seq: offset + index, ...event, isLine: isLine || undefined }))
    const block = EventList.blockOf(events)
    t.strictSame([...block], events)
    t.strictSame([block.firstSeq, block.length, block.lastSeq], [offset, events.length, offset + events.length - 1])
    t.strictSame(events.map(({ seq }) => block.sizeAt(seq)), events.map(({ data }) => data.length))
    t.equal(block.size, events.reduce((size, { data }) => size + data.length, 0))
    t.ok(block.bytes > block.size)
    t.equal(EventList.blockOf(block), block)
  }), { numRuns: 200 })
})

t.test('blocks follow each other over a log, however it was trimmed and asked', async (t) => {
  fc.assert(fc.property(fc.array(fc.oneof(init, fc.record({ after: fc.nat(60) })), { maxLength: 120 }), fc.nat(40), (steps, maxEvents) => {
    const bus = new EventBus({ replay: { maxEvents } })
    const topic = bus.topic('log')
    const model: string[] = []
    for (const step of steps) {
      if ('data' in step) {
        topic.append(step)
        model.push(step.data)
      } else {
        const block = topic.blockAfter(step.after)
        const first = Math.max(step.after + 1, topic.oldest)
        if (first > topic.last) t.equal(block, undefined)
        else {
          t.equal(block?.firstSeq, first)
          t.strictSame(Array.from(block ?? [], ({ data }) => data), model.slice(first - 1, first - 1 + (block?.length ?? 0)))
        }
      }
    }
    t.strictSame(topic.read(0).map(({ seq, data }) => [seq, data]), model.slice(model.length - Math.min(maxEvents, model.length)).map((data, index, kept) => [model.length - kept.length + index + 1, data]))
    bus.close()
  }), { numRuns: 300 })
})

t.test('a block takes 256 events or 32 KB, and a larger event has one for itself', async (t) => {
  const topic = new EventBus({ replay: { maxEvents: 10_000 } }).topic('log')
  const sizes = [...Array.from({ length: 300 }, () => 10), 20_000, 20_000, 50_000, 10]
  for (const size of sizes) topic.append({ data: 'x'.repeat(size) })
  const blocks = []
  for (let block = topic.blockAfter(0); block !== undefined; block = topic.blockAfter(block.lastSeq)) blocks.push([block.firstSeq, block.lastSeq])
  t.strictSame(blocks, [[1, 256], [257, 301], [302, 302], [303, 303], [304, 304]])
  t.equal(topic.blockAfter(1_000), undefined)
})

for (const text of ['plain ', 'Übergröße 世界 ']) {
  t.test(`a long log of short events is told whole from its blocks: ${text}`, async (t) => {
    const topic = new EventBus({ replay: { maxEvents: 1_000 } }).topic('log')
    const count = 30_000
    for (let seq = 1; seq <= count; seq++) {
      topic.append({ data: `${text}${seq}` })
      if (seq % 100 === 0) topic.blockAfter(seq - 100)
    }
    const kept = Array.from({ length: 1_000 }, (_, index) => `${text}${count - 999 + index}`)
    t.equal(topic.oldest, count - 999)
    t.strictSame(topic.read(0).map(({ data }) => data), kept)
    t.strictSame([topic.read(count - 500, 1)[0]?.data, topic.read(count - 900, 1)[0]?.data], [kept[500], kept[100]])
    let told = ''
    topic.attach({ view: sseView({ id: 'none' }), sink: { write (chunk) { told += String(chunk); return true }, gap () {}, end () {} } })
    t.equal(told, kept.map((data) => `data: ${data}\n\n`).join(''))
  })
}
