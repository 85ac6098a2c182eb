import fc from 'fast-check'
import t from 'tap'
import { Sequence } from '../../../../plugins/agent-protocol/client/sequence.ts'

t.test('takes each number once and in order, whatever connections bring, and says what is missing for good', async (t) => {
  // What a service has told, and has lost; connections that begin where they are asked to, repeat, and leave out.
  const lost = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 5 })
  const noise = fc.array(fc.tuple(fc.nat(4), fc.constantFrom('skip', 'repeat', 'cut')), { maxLength: 10 })
  fc.assert(fc.property(fc.integer({ min: 1, max: 30 }), lost, fc.array(noise, { minLength: 1, maxLength: 6 }), (count, gone, connections) => {
    const sequence = new Sequence(0)
    const taken: number[] = []
    let missing = 0
    const kept = Array.from({ length: count }, (_, index) => index + 1).filter((seq) => !gone.includes(seq))
    const read = (seq: number): boolean => {
      const before = sequence.missingBefore(seq)
      switch (sequence.take(seq, undefined)) {
        case 'hole': return false
        case 'duplicate': return true
        case 'new':
          missing += before
          taken.push(seq)
          return true
      }
    }
    for (const events of [...connections, [], [], [], [], [], [], []]) {
      const from = sequence.last
      let isOpen = true
      kept.filter((seq) => seq > from).forEach((seq, index) => {
        const [, what] = events.find(([at]) => at === index) ?? []
        if (what === 'cut') isOpen = false
        if (!isOpen || what === 'skip') return
        isOpen = read(seq)
        if (what === 'repeat' && isOpen) isOpen = read(seq)
      })
    }
    t.strictSame(taken, [...new Set(taken)].sort((a, b) => a - b), 'in order, once')
    t.ok(taken.every((seq) => kept.includes(seq)))
    // A number that the same hole was seen before twice counts as lost: everything else was taken.
    t.equal(taken.length + missing, taken.at(-1) ?? 0)
  }), { numRuns: 300 })
})

t.test('a hole is asked for again once, and is taken for lost when it comes again', async (t) => {
  const sequence = new Sequence(2)
  t.strictSame([sequence.take(5, undefined), sequence.last, sequence.missingBefore(5), sequence.take(5, undefined), sequence.last], ['hole', 2, 2, 'new', 5])
  t.equal(sequence.missingBefore(6), 0)
  t.strictSame([sequence.take(8, undefined), sequence.take(6, undefined), sequence.take(8, undefined)], ['hole', 'new', 'hole'], 'each hole by itself')
})

t.test('what has no number is known by its id; what has one may share its id with others', async (t) => {
  const sequence = new Sequence(0)
  t.strictSame([sequence.take(undefined, 'a'), sequence.take(0, 'a'), sequence.take(undefined, 'b'), sequence.take(undefined, undefined)], ['new', 'duplicate', 'new', 'new'])
  t.strictSame([sequence.take(1, 'x'), sequence.take(2, 'x')], ['new', 'new'])
  sequence.moveTo(0)
  t.strictSame([sequence.take(1, 'x'), sequence.take(2, 'y'), sequence.last], ['duplicate', 'new', 2], 'after a new beginning the ids count too')
})

t.test('remembers no more ids than it needs', async (t) => {
  const sequence = new Sequence(0)
  for (let n = 0; n < 5_000; n++) sequence.take(undefined, `id-${n}`)
  t.equal(sequence.take(undefined, 'id-4999'), 'duplicate')
  t.equal(sequence.take(undefined, 'id-0'), 'new')
})
