import t from 'tap'
import { type InterruptRecord } from '../../../lib/stores/index.ts'
import { type AgUiEvent, type Interrupt } from '../../../plugins/ag-ui/event-schemas.ts'
import { interruptOf } from '../../../plugins/ag-ui/interrupts.ts'
import { withOpenInterrupts } from '../../../plugins/ag-ui/open-interrupts.ts'

const boundary = { threadId: 'thread', runId: 'run' }
const start: AgUiEvent[] = [{ type: 'RUN_STARTED', ...boundary }, { type: 'MESSAGES_SNAPSHOT', messages: [] }]
const told: Interrupt = { id: 'r:c', reason: 'tool_call', toolCallId: 'wire', message: 'As told' }
const finished = (more: object = {}): AgUiEvent => ({ type: 'RUN_FINISHED', ...boundary, ...more })
const asking = finished({ outcome: { type: 'interrupt', interrupts: [told] }, usage: [{ inputTokens: 1 }] })
const failed: AgUiEvent = { type: 'RUN_ERROR', message: 'no', timestamp: 1 }
const record = (id: string): InterruptRecord => ({
  id, kind: 'confirm', pending: { kind: 'confirm', replyId: 'r', toolCall: { type: 'tool_use', id: 'c', name: 'f', input: {} } }, createdAt: 1, expiresAt: 0, run: { owner: {}, protocol: 'ag-ui', id: 'x' }, session: 'thread', state: 'open'
})
const fresh = (id: string): Interrupt => interruptOf(record(id).pending, { id, expiresAt: 0 })
const show = (terminal: AgUiEvent[], open: string[], state: 'completed' | 'lost' = 'completed', more: object = {}): AgUiEvent[] => {
  const events = withOpenInterrupts([...start, ...terminal], open.map(record), { state, ...more })
  t.strictSame(events.slice(0, 2), start)
  return events.slice(2)
}

t.test('what is open stands in the outcome as it was told, whatever the run ended with', async (t) => {
  t.strictSame(show([asking], ['r:c']), [asking])
  t.strictSame(show([asking], ['r:c', 'r:d']), [finished({ usage: [{ inputTokens: 1 }], outcome: { type: 'interrupt', interrupts: [told, fresh('r:d')] } })])
  for (const terminal of [[finished({ outcome: { type: 'success' } })], [failed], []]) t.strictSame(show(terminal, ['r:d']), [finished({ outcome: { type: 'interrupt', interrupts: [fresh('r:d')] } })])
})

t.test('what is open no more does not stand there', async (t) => {
  t.strictSame(show([asking], []), [finished({ usage: [{ inputTokens: 1 }] })])
  for (const terminal of [finished(), finished({ outcome: { type: 'cancelled' } }), failed]) t.strictSame(show([terminal], []), [terminal])
  t.strictSame(withOpenInterrupts([], [], { state: 'completed' }), [])
})

t.test('a run that was lost while it waited says so', async (t) => {
  t.strictSame(show([asking], [], 'lost', { end: { kind: 'lost', code: 'NODE_LOST', message: 'Lost.' }, endedAt: 5 }), [{ type: 'RUN_ERROR', code: 'NODE_LOST', message: 'Lost.', timestamp: 5 }])
  t.strictSame(show([asking], [], 'lost'), [{ type: 'RUN_ERROR', code: '', message: '', timestamp: 0 }])
  t.strictSame(show([failed], [], 'lost'), [failed])
})
