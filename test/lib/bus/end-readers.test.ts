import t from 'tap'
import { type AttachmentEnd, type Cursor, EventBus, type View } from '../../../lib/bus/index.ts'

const view: View = { key: 'text', frame: ({ data }) => ({ head: '', data, tail: '\n' }) }

function recorder (): { readonly text: string[], readonly ends: Array<[AttachmentEnd, Cursor]>, write (chunk: Uint8Array): boolean, gap (): void, end (why: AttachmentEnd, cursor: Cursor): void } {
  const text: string[] = []
  const ends: Array<[AttachmentEnd, Cursor]> = []
  return {
    text,
    ends,
    write (chunk) {
      text.push(Buffer.from(chunk).toString())
      return true
    },
    gap () {},
    end (why, cursor) { ends.push([why, cursor]) }
  }
}

t.test('ending the readers ends those there are and those that come, and topics go on', async (t) => {
  const bus = new EventBus()
  const topic = bus.topic('a', { epoch: 'e1', lifetime: 'use' })
  const before = recorder()
  topic.attach({ view, sink: before })
  const next = bus.subscribe('a').next()
  bus.publish('a', { data: '1' })
  await next
  bus.endReaders()
  t.same([before.text, before.ends], [['1\n'], [['closed', { epoch: 'e1', seq: 1 }]]])
  t.equal(topic.readers, 0)

  t.equal(bus.publish('a', { data: '2' }), 2)
  const after = recorder()
  topic.attach({ view, sink: after })
  t.same([after.text, after.ends], [[], [['closed', { epoch: 'e1', seq: 0 }]]])
  t.same(await bus.subscribe('a', { from: 'start' }).next(), { done: true, value: undefined })
  t.same(await bus.subscribe('b').next(), { done: true, value: undefined }, 'in topics that are made afterwards, too')
  t.same(topic.read(0).map(({ data }) => data), ['1', '2'])
  bus.endReaders()
  bus.close()
  t.throws(() => bus.publish('a', { data: '3' }), { code: 'AGT_ERR_BUS_CLOSED' })
})
