import t from 'tap'
import { contractMessage } from '../../../plugins/ag-ui/contract.ts'

t.test('each breach of the contract names the ids that it is about', async (t) => {
  const open = [{ id: 'a' }, { id: 'b' }] as never
  const message = (kind: Parameters<typeof contractMessage>[0]['kind'], ids: string[] = [], missing: string[] = []): string => contractMessage({ kind, open, missing, ids })
  t.strictSame([
    message('none-open', ['x']),
    message('unanswered'),
    message('mismatch', ['x'], ['a', 'b']),
    message('mismatch', [], ['b']),
    message('duplicate', ['a']),
    message('expired', ['a', 'b']),
    message('taken', ['b'])
  ], [
    'The thread has no open interrupt that resume could answer: x.',
    'The thread has unresolved interrupts, and this run answers none of them: a, b.',
    'resume must answer exactly the thread\'s open interrupts. Missing: a, b. Unknown: x.',
    'resume must answer exactly the thread\'s open interrupts. Missing: b. Unknown: none.',
    'resume answers an interrupt more than once: a.',
    'The interrupt has expired and can only be cancelled: a, b.',
    'The interrupt is being answered by another run: b.'
  ])
})
