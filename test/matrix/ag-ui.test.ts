import { agUi } from '../../plugins/ag-ui/index.ts'
import { request } from '../helpers/ag-ui-app.ts'
import { playMatrix } from './ownership.ts'
import { type MatrixProtocol, type Row, STATES, type Target } from './protocol.ts'

const key = (id: string): Readonly<Record<string, string>> => ({ 'idempotency-key': `key-${id}` })
const running = ['running'] as const
const busy = ['running', 'waiting'] as const

const runs = (url: string): Readonly<Record<string, Row>> => ({
  'starts a run': { request: ({ id }) => ({ url, body: request({ threadId: id, runId: 'next' }) }), differs: busy },
  'sends the request again': { request: ({ id }) => ({ url, body: request({ threadId: id }), headers: key(id) }), differs: STATES },
  'answers the question': {
    request: ({ id, interruptId }) => ({ url, body: request({ threadId: id, runId: 'next', resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] }) }),
    differs: ['waiting']
  },
  'gives the question up': {
    request: ({ id, interruptId }) => ({ url, body: request({ threadId: id, runId: 'next', resume: [{ interruptId, status: 'cancelled' }] }) }),
    differs: ['waiting']
  }
})

const connects = (url: string): Readonly<Record<string, Row>> => ({
  'rejoins the thread': { request: ({ id }) => ({ url, body: { threadId: id } }), differs: STATES },
  'rejoins the run': { request: ({ id }) => ({ url, body: { threadId: id, runId: 'run' } }), differs: STATES },
  // At the end of what is over nothing is left to be told: the answer is an empty stream, and still its owner's alone.
  'goes on after a cursor': { request: ({ id, cursor }) => ({ url, body: { threadId: id, runId: 'run' }, headers: { 'last-event-id': cursor } }), differs: STATES },
  'goes on after a cursor in the body': { request: ({ id, cursor }) => ({ url, body: { threadId: id, lastSeenEventId: cursor } }), differs: STATES }
})

/** AG-UI: threads. */
const agUiMatrix: MatrixProtocol = {
  name: 'ag-ui',
  register: async (app) => { await app.register(agUi, { onDisconnect: 'continue' }) },
  arrange: (id) => ({ url: '/agui/run/agent', body: request({ threadId: id }), headers: key(id) }),
  isStreamed: true,
  rows: {
    'POST /agui/run': runs('/agui/run'),
    'POST /agui/run/:agentId': runs('/agui/run/agent'),
    'POST /agui/connect': connects('/agui/connect'),
    'POST /agui/connect/:agentId': connects('/agui/connect/agent'),
    'POST /agui/stop/:threadId': {
      'stops the thread': { request: ({ id }: Target) => ({ url: `/agui/stop/${id}` }), differs: running },
      'stops the run': { request: ({ id }: Target) => ({ url: `/agui/stop/${id}`, body: { runId: 'run' } }), differs: running }
    }
  },
  exempt: {
    'OPTIONS /agui*': 'preflights say nothing of any run'
  }
}

playMatrix(agUiMatrix)
