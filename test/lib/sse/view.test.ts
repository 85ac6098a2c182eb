import t from 'tap'
import { sseView } from '../../../lib/sse/index.ts'
import { parseFrames } from '../../helpers/sse-client.ts'

const at = { epoch: 'e1', prevSeq: 6 }

function frameText (view: ReturnType<typeof sseView>, event: { event?: string, data: string }): string {
  const frame = view.frame({ seq: 7, ...event }, at)
  return frame === undefined ? '' : frame.head + String(frame.data) + frame.tail
}

t.test('frames an event with epoch and sequence, its sequence, or no id', async (t) => {
  t.equal(frameText(sseView(), { data: '{"a":1}' }), 'id: e1.7\ndata: {"a":1}\n\n')
  t.equal(frameText(sseView({ id: 'seq' }), { event: 'tick', data: '1' }), 'id: 7\nevent: tick\ndata: 1\n\n')
  t.equal(frameText(sseView({ id: 'none' }), { data: '1' }), 'data: 1\n\n')
})

t.test('views of one form share a key, others do not', async (t) => {
  t.equal(sseView().key, sseView({ id: 'epoch' }).key)
  t.not(sseView().key, sseView({ id: 'seq' }).key)
  t.equal(sseView({ key: 'mine' }).key, 'mine')
})

t.test('says which id a cursor goes under', async (t) => {
  t.equal(sseView().cursorId({ epoch: 'e1', seq: 7 }), 'e1.7')
  t.equal(sseView().cursorId({ seq: 7 }), '7')
  t.equal(sseView({ id: 'seq' }).cursorId({ epoch: 'e1', seq: 7 }), '7')
  t.equal(sseView({ id: 'none' }).cursorId({ epoch: 'e1', seq: 7 }), undefined)
})

t.test('line breaks in raw text become data lines, in every position', async (t) => {
  for (const [data, lines] of [
    ['one\revent: evil', ['one', 'event: evil']],
    ['a\r\nb', ['a', 'b']],
    ['a\r\rdata: z', ['a', '', 'data: z']],
    ['\n', ['', '']],
    ['id: 1\n\nid: 2', ['id: 1', '', 'id: 2']]
  ] as const) {
    const text = frameText(sseView(), { data })
    t.equal(text, `id: e1.7\n${lines.map((line) => `data: ${line}\n`).join('')}\n`)
    t.same(parseFrames(text).map((frame) => [frame.id, frame.event, frame.data]), [['e1.7', undefined, lines.join('\n')]])
  }
})

t.test('U+0085, U+2028 and U+2029 are escaped in JSON and left in raw text', async (t) => {
  const text = 'a\u0085b\u2028c\u2029d'
  const json = frameText(sseView(), { data: JSON.stringify({ text }) })
  t.equal(json, 'id: e1.7\ndata: {"text":"a\\u0085b\\u2028c\\u2029d"}\n\n')
  t.same(JSON.parse(parseFrames(json)[0]?.data ?? ''), { text })
  t.equal(frameText(sseView(), { data: text }), `id: e1.7\ndata: ${text}\n\n`)
})

t.test('pretty-printed JSON is split and still the same JSON', async (t) => {
  const value = { text: 'a\u2028b', list: [1, 2] }
  const [frame] = parseFrames(frameText(sseView(), { data: JSON.stringify(value, null, 2).replace(/\n/g, '\r\n') }))
  t.same(JSON.parse(frame?.data ?? ''), value)
})

t.test('refuses an event name that would forge a field', async (t) => {
  for (const event of ['x\ndata: forged\n\n', 'x\ry', 'x\0y']) {
    t.throws(() => sseView().frame({ seq: 7, event, data: '1' }, at), { code: 'AGT_ERR_SSE_FIELD' })
  }
})
