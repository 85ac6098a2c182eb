import fc from 'fast-check'
import t from 'tap'
import { escapeSeparators, isPlain, jsonLine, quoteLine } from '../../lib/json-line.ts'

const unusual = fc.constantFrom('\u0085', '\u2028', '\u2029', '"', '\\', '\n', '\r', '\0', '\ud800', '\udc00', '\u{1f600}', 'é', '世')
const text = fc.oneof(fc.string(), fc.array(fc.oneof(unusual, fc.string({ maxLength: 3 })), { maxLength: 5 }).map((parts) => parts.join('')))
const key = fc.oneof(text, fc.constantFrom('__proto__', 'toJSON', 'constructor', '1', '01', ''))
const scalar = fc.oneof(text, fc.double(), fc.integer(), fc.constantFrom(-0, 1e21, 1e-7, true, false, null, undefined))

t.test('a value has the text of JSON.stringify, on one line by anybody\'s rules', async (t) => {
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.dictionary(key, scalar, { noNullPrototype: true }) },
    fc.dictionary(key, scalar, { noNullPrototype: false }),
    fc.dictionary(key, fc.oneof(scalar, fc.array(scalar), fc.dictionary(key, scalar), fc.date())),
    fc.oneof(scalar, fc.array(scalar), fc.date())
  )
  fc.assert(fc.property(value, (value) => {
    const line = jsonLine(value)
    const wanted = JSON.stringify(value)
    t.equal(line, wanted === undefined ? undefined : escapeSeparators(wanted))
    if (line === undefined) return
    t.notMatch(line, /[\r\n\u0085\u2028\u2029]/)
    t.ok(line.isWellFormed())
    t.equal(JSON.stringify(JSON.parse(line)), JSON.stringify(JSON.parse(wanted)))
  }), { numRuns: 2_000 })
})

t.test('what has a JSON of its own keeps it', async (t) => {
  t.equal(jsonLine({ a: 1, toJSON: () => 'own' }), '"own"')
  t.equal(jsonLine(new Date(0)), '"1970-01-01T00:00:00.000Z"')
  t.equal(jsonLine(new Map([[1, 2]])), '{}')
  t.equal(jsonLine({ list: [] }), '{"list":[]}')
  t.equal(jsonLine(() => {}), undefined)
  t.throws(() => jsonLine({ big: 1n }), TypeError)
  t.throws(() => jsonLine({ get bad () { throw new RangeError('no') } }), RangeError)
})

t.test('what others put on every object is left out', async (t) => {
  const prototype = Object.prototype as unknown as Record<string, unknown>
  prototype['extra'] = 1
  t.teardown(() => { delete prototype['extra'] })
  t.equal(jsonLine({ a: 'b' }), '{"a":"b"}')
})

t.test('keys are remembered up to a limit', async (t) => {
  for (let i = 0; i < 1_100; i++) t.equal(jsonLine({ [`key ${i}`]: i }), `{"key ${i}":${i}}`)
})

t.test('a text is quoted as JSON does it', async (t) => {
  fc.assert(fc.property(text, (text) => {
    t.equal(quoteLine(text), escapeSeparators(JSON.stringify(text)))
    if (isPlain(text)) t.equal(JSON.stringify(text), `"${text}"`)
  }))
})
