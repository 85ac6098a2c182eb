import t from 'tap'
import { isFinal, readDetail, readStatus } from '../../../plugins/agent-protocol/wire.ts'

t.test('a detail level is read in any case, with blanks around it, and anything else is none', async (t) => {
  t.equal(readDetail(' Full '), 'full')
  t.equal(readDetail('VERBOSE'), 'verbose')
  t.equal(readDetail('status'), 'status')
  for (const value of ['', 'everything', 5, null, undefined, ['full']]) t.equal(readDetail(value), undefined)
})

t.test('the spellings of other servers are read', async (t) => {
  t.equal(readStatus('FAILED'), 'error')
  t.equal(readStatus('canceled'), 'cancelled')
  t.equal(readStatus(' Awaiting_Confirm'), 'awaiting_confirm')
  for (const value of ['', 'done', 5, undefined]) t.equal(readStatus(value), undefined)
  t.strictSame((['pending', 'running', 'awaiting_confirm', 'success', 'error', 'cancelled'] as const).map(isFinal), [false, false, false, true, true, true])
})
