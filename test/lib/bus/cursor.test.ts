import fc from 'fast-check'
import t from 'tap'
import { formatCursor, parseCursor } from '../../../lib/bus/index.ts'

t.test('reads an epoch with a sequence, and a bare sequence', async (t) => {
  t.strictSame(parseCursor('a_B-9.17'), { epoch: 'a_B-9', seq: 17 })
  t.strictSame(parseCursor('17'), { seq: 17 })
  t.strictSame(parseCursor('0'), { seq: 0 })
  t.strictSame(parseCursor('7.0'), { epoch: '7', seq: 0 })
  t.strictSame(parseCursor('9007199254740991'), { seq: Number.MAX_SAFE_INTEGER })
})

t.test('refuses everything else', async (t) => {
  for (const text of [
    '', ' ', '1 ', ' 1', '+1', '-1', '-0', '1.5.', '.1', 'a.', 'a.b', 'a.01', '007', '1e3', '0x10', 'NaN', 'Infinity', '1,000',
    '9007199254740992', '99999999999999999', '9'.repeat(400), '१२', '１', 'é.1', 'a.b.1', 'a b.1', 'a\n.1', '1\n', '__proto__', `${'a'.repeat(65)}.1`
  ]) t.equal(parseCursor(text), undefined, JSON.stringify(text))
})

t.test('reads back what it formats', async () => {
  fc.assert(fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), fc.maxSafeNat(), (epoch, seq) => {
    const cursor = parseCursor(formatCursor(epoch, seq))
    return cursor?.epoch === epoch && cursor.seq === seq
  }))
})

t.test('never throws and never invents a number for any text', async () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => {
    const cursor = parseCursor(text)
    return cursor === undefined || text === (cursor.epoch === undefined ? String(cursor.seq) : formatCursor(cursor.epoch, cursor.seq))
  }))
})
