import t from 'tap'
import { type Pending } from '../../../lib/agent/index.ts'
import { interruptId, interruptOf } from '../../../plugins/ag-ui/interrupts.ts'

const toolCall = { type: 'tool_use' as const, id: 'c4', name: 'delete_file', input: { path: '/tmp/a' }, content: '{"path":"/tmp/a"}' }
const confirm: Pending = { kind: 'confirm', replyId: 'rep-3', toolCall }
const external: Pending = { kind: 'external', replyId: 'rep-3', toolCall }

t.test('an approval is told as the reference tells it', async (t) => {
  t.strictSame(interruptOf(confirm), {
    id: 'rep-3:c4',
    reason: 'tool_call',
    toolCallId: 'c4',
    message: "Tool 'delete_file' requires user confirmation before execution",
    responseSchema: {
      type: 'object',
      properties: {
        approved: { type: 'boolean' },
        editedArgs: { type: 'object', description: 'Full replacement of the tool args. Not merged.' },
        reason: { type: 'string', description: 'Optional explanation supplied when the tool call is denied.' }
      },
      required: ['approved']
    },
    metadata: {
      'agentscope.interruptKind': 'permission_confirm',
      toolName: 'delete_file',
      toolInput: { path: '/tmp/a' },
      toolContent: '{"path":"/tmp/a"}',
      replyId: 'rep-3'
    }
  })
})

t.test('a suspended call has no schema and no kind, and a message only where it said something', async (t) => {
  const metadata = { toolName: 'delete_file', toolInput: { path: '/tmp/a' }, toolContent: '{"path":"/tmp/a"}', replyId: 'rep-3' }
  t.strictSame(interruptOf(external), { id: 'rep-3:c4', reason: 'tool_call', toolCallId: 'c4', metadata })
  t.strictSame(interruptOf(external, { suspensionText: '' }), { id: 'rep-3:c4', reason: 'tool_call', toolCallId: 'c4', metadata })
  t.strictSame(interruptOf(external, { suspensionText: 'Run it', id: 'own', toolCallId: 'wire', expiresAt: 0 }), {
    id: 'own', reason: 'tool_call', toolCallId: 'wire', message: 'Run it', expiresAt: '1970-01-01T00:00:00.000Z', metadata
  })
})

t.test('what is blank or empty is absent, and the arguments are always the text of an object', async (t) => {
  const bare = (call: object): unknown => interruptOf({ kind: 'external', replyId: ' ', toolCall: { ...toolCall, ...call } })
  t.strictSame(bare({ name: '', input: {}, content: undefined }), { id: 'c4', reason: 'tool_call', toolCallId: 'c4', metadata: { toolContent: '{}' } })
  for (const content of ['[1]', 'null', '{"broken', '']) t.match(bare({ content }), { metadata: { toolContent: '{"path":"/tmp/a"}' } }, content)
  t.match(interruptOf({ kind: 'confirm', replyId: 'r', toolCall: { ...toolCall, name: ' ' } }), { message: "Tool 'tool' requires user confirmation before execution" })
})

t.test('a tool may say its own message, schema, expiry and rules; nulls are absent', async (t) => {
  const own = { message: 'Really?', responseSchema: { type: 'object' }, expiresAt: '2030-01-01T00:00:00Z', suggestedRules: [{ tool_name: 'x' }] }
  t.match(interruptOf({ ...external, toolCall: { ...toolCall, metadata: own } }), {
    message: 'Really?', responseSchema: { type: 'object' }, expiresAt: '2030-01-01T00:00:00Z', metadata: { suggestedRules: [{ tool_name: 'x' }] }
  })
  t.match(interruptOf({ ...external, toolCall: { ...toolCall, metadata: own } }, { expiresAt: 0 }), { expiresAt: '1970-01-01T00:00:00.000Z' })
  const nulls = { message: null, responseSchema: null, expiresAt: null, suggestedRules: null }
  t.strictSame(interruptOf({ ...confirm, toolCall: { ...toolCall, metadata: nulls } }), interruptOf(confirm))
})

t.test('a question keeps its reason where the protocol knows it, and gets a prefix elsewhere', async (t) => {
  const ask = (reason: string, more = {}): unknown => interruptOf({ kind: 'input', replyId: 'r', request: { id: 'i', reason, ...more } })
  t.strictSame(ask('input_required'), { id: 'r:i', reason: 'input_required' })
  t.strictSame(ask('auth_required', { message: 'Log in', toolCallId: 'c', responseSchema: { type: 'string' }, expiresAt: '2030-01-01T00:00:00Z', metadata: { url: 'u' } }), {
    id: 'r:i', reason: 'agentscope:auth_required', message: 'Log in', toolCallId: 'c', responseSchema: { type: 'string' }, expiresAt: '2030-01-01T00:00:00Z', metadata: { url: 'u' }
  })
  t.match(ask('acme:pick'), { reason: 'acme:pick' })
  t.strictSame(ask('confirmation', { message: null, toolCallId: null, responseSchema: null, expiresAt: null, metadata: null }), { id: 'r:i', reason: 'confirmation' })
})

t.test('ids name the reply where there is one', async (t) => {
  t.equal(interruptId(confirm), 'rep-3:c4')
  t.equal(interruptId({ ...confirm, replyId: '' }), 'c4')
  t.equal(interruptId({ kind: 'input', replyId: 'r', request: { id: 'i', reason: 'x' } }), 'r:i')
})

t.test('what has no id cannot be answered', async (t) => {
  t.throws(() => interruptOf({ ...external, toolCall: { ...toolCall, id: ' ' } }), { code: 'INVALID_INPUT_ERROR' })
})
