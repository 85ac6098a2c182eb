import t from 'tap'
import { EventList } from '../../../lib/bus/index.ts'

t.test('gives its payloads as UTF-8 in one piece, few or many of them', async (t) => {
  for (const count of [1, 7, 8, 20]) {
    const data = Array.from({ length: count }, (_, index) => `${index % 3 === 0 ? 'é' : ''}${'x'.repeat(index)}\u{1f600}`)
    const { bytes, ends, names, levels } = EventList.blockOf(data.map((text, index) => ({ seq: 5 + index, data: text }))).columns
    t.same(Array.from(ends, (end, index) => bytes.toString('utf8', ends[index - 1] ?? 0, end)), data)
    t.same([names, levels], [undefined, undefined])
  }
})

t.test('keeps names and levels of events where one has them', async (t) => {
  const { names, levels } = EventList.blockOf([{ seq: 1, data: 'a' }, { seq: 2, data: 'b', event: 'e' }, { seq: 3, data: 'c', level: 2 }]).columns
  t.same([names, levels], [[undefined, 'e', undefined], [undefined, undefined, 2]])
})
