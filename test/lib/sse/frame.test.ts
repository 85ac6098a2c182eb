import fc from 'fast-check'
import t from 'tap'
import { encodeFrame } from '../../../lib/sse/index.ts'
import { parseFrames } from '../../helpers/sse-client.ts'

t.test('writes fields in one order, LF only, closed by a blank line', async (t) => {
  t.equal(encodeFrame({ comment: 'hi', id: 'a.1', event: 'tick', retry: 500, data: '{"a":1}' }),
    ': hi\nid: a.1\nevent: tick\nretry: 500\ndata: {"a":1}\n\n')
  t.equal(encodeFrame({ data: '' }), 'data: \n\n')
  t.equal(encodeFrame({ comment: 'heartbeat' }), ': heartbeat\n\n')
  t.equal(encodeFrame({ retry: 0 }), 'retry: 0\n\n')
})

t.test('an id of 0 and an empty id are ids', async (t) => {
  t.equal(encodeFrame({ id: 0, data: 'x' }), 'id: 0\ndata: x\n\n')
  t.equal(encodeFrame({ id: '0', data: 'x' }), 'id: 0\ndata: x\n\n')
  t.equal(encodeFrame({ id: '', data: 'x' }), 'id: \ndata: x\n\n')
})

t.test('refuses a line break or NUL in id, event and comment', async (t) => {
  const forged = ['x\ndata: forged\n\n', 'a\rdata: forged', 'a\r\nid: b', 'a\0b', '\n', '\r', '\0', 'end\n']
  for (const value of forged) {
    for (const field of ['id', 'event', 'comment'] as const) {
      t.throws(() => encodeFrame({ [field]: value, data: 'x' }), { code: 'AGT_ERR_SSE_FIELD' }, `${field}: ${JSON.stringify(value)}`)
    }
  }
})

t.test('refuses a retry that a client would skip', async (t) => {
  for (const retry of [-1, 1.5, NaN, Infinity, 1e21]) {
    t.throws(() => encodeFrame({ retry }), { code: 'AGT_ERR_SSE_FIELD' }, String(retry))
  }
})

t.test('every kind of line break in data starts another data line', async (t) => {
  t.equal(encodeFrame({ data: 'one\revent: evil' }), 'data: one\ndata: event: evil\n\n')
  t.equal(encodeFrame({ data: 'a\r\nb' }), 'data: a\ndata: b\n\n')
  t.equal(encodeFrame({ data: 'a\r\rdata: z' }), 'data: a\ndata: \ndata: data: z\n\n')
  t.equal(encodeFrame({ data: 'a\n\nid: 9\n' }), 'data: a\ndata: \ndata: id: 9\ndata: \n\n')
})

t.test('a lone surrogate becomes U+FFFD, a pair stays', async (t) => {
  t.equal(encodeFrame({ data: 'a\ud83d' }), 'data: a\ufffd\n\n')
  t.equal(encodeFrame({ event: '\ude00', data: '\ud83d\ude00' }), 'event: \ufffd\ndata: \ud83d\ude00\n\n')
})

t.test('whatever is encoded, a client reads one frame with the same fields', async (t) => {
  const noBreak = fc.string({ unit: 'binary' }).filter((text) => !/[\r\n\0]/.test(text))
  const line = fc.string({ unit: fc.constantFrom('a', ' ', ':', '\r', '\n', '\r\n', 'data: ', 'id: 1', '\u2028', '\ud83d\ude00', '\0', '\ufeff') })
  fc.assert(fc.property(fc.record({ id: noBreak, event: noBreak, data: line, comment: noBreak, retry: fc.nat() }, { requiredKeys: ['data'] }), (frame) => {
    const received = parseFrames(encodeFrame(frame))
    t.same(received.map(({ id, event, data, retry, comments }) => ({ id, event, data, retry, comments })), [{
      id: frame.id,
      event: frame.event,
      data: frame.data.replace(/\r\n|\r/g, '\n'),
      retry: frame.retry,
      comments: frame.comment === undefined ? [] : [frame.comment]
    }])
  }))
})
