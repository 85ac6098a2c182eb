import fc from 'fast-check'
import t from 'tap'
import { type LogEvent, logEvent } from '../../../../lib/stores/index.ts'
import { countOf, decodeEntry, encodeEntry } from '../../../../lib/stores/redis/entry.ts'

const init = fc.record({
  data: fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.toWellFormed()),
  event: fc.option(fc.constantFrom('', 'a', '"\n'), { nil: undefined }),
  level: fc.option(fc.nat(3), { nil: undefined })
})
const plain = fc.record({ data: init.map(({ data }) => data) })

t.test('an entry gives back its events, as many as asked for after any cursor', (t) => {
  fc.assert(fc.property(fc.nat(1_000), fc.oneof(fc.array(init, { minLength: 1, maxLength: 20 }), fc.array(plain, { minLength: 1, maxLength: 20 })), fc.nat(25), fc.nat(25), (before, inits, skipped, limit) => {
    const events: LogEvent[] = inits.map((one, index) => 'level' in one ? logEvent(before + 1 + index, one.data, one.event, one.level) : logEvent(before + 1 + index, one.data))
    const text = encodeEntry(events).toString()
    const found: LogEvent[] = []
    decodeEntry(before + events.length, text, before + skipped, limit, found)
    t.strictSame(found, events.slice(skipped, skipped + limit))
    t.equal(countOf(text.slice(0, text.indexOf('\n'))), events.length)
  }), { numRuns: 300 })
  t.end()
})

t.test('payloads stand in an entry as they are', (t) => {
  t.equal(encodeEntry([{ seq: 7, data: '{"a":"\u00e9"}' }, { seq: 8, data: '' }]).toString(), '[9,0]\n{"a":"\u00e9"}')
  t.equal(encodeEntry([{ seq: 7, data: 'x', event: 'e' }, { seq: 8, data: 'y', level: 2 }]).toString(), '{"n":[1,1],"e":["e",null],"l":[null,2]}\nxy')
  const many = Array.from({ length: 9 }, (_, index) => ({ seq: index + 1, data: `${index}` }))
  t.equal(encodeEntry(many).toString(), '[1,1,1,1,1,1,1,1,1]\n012345678')
  t.end()
})
