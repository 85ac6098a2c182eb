import t from 'tap'
import { type Decision, editCall, type Pending, resolveDecisions, type ToolUseBlock } from '../../../lib/agent/index.ts'

const call = (id: string): ToolUseBlock => ({ type: 'tool_use', id, name: 'write', input: { path: 'a' }, content: '{"path":"a"}', metadata: { thoughtSignature: 's' }, state: 'asking' })
const confirm: Pending = { kind: 'confirm', replyId: 'r', toolCall: call('A') }
const external: Pending = { kind: 'external', replyId: 'r', toolCall: { ...call('B'), state: 'pending' } }
const input: Pending = { kind: 'input', replyId: 'r', request: { id: 'Q', reason: 'login' } }
const tools = [{ name: 'write', parameters: { type: 'object', properties: { path: { type: 'string' }, deep: { type: 'object', properties: { n: { type: 'integer' } } } }, required: ['path'] } }]

function decisionsOf (pending: Pending[], decisions: unknown[], options = {}): readonly Decision[] {
  const resolved = resolveDecisions(pending, decisions, options)
  if (resolved.kind === 'rejected') throw new Error(JSON.stringify(resolved.problems))
  return resolved.decisions
}

function problemsOf (pending: Pending[], decisions: unknown[], options = {}): string[] {
  const resolved = resolveDecisions(pending, decisions, options)
  return resolved.kind === 'rejected' ? resolved.problems.map(({ code, id }) => `${code} ${id}`.trim()) : []
}

t.test('each request gets its answer, in the order of the requests', async (t) => {
  t.strictSame(decisionsOf([confirm, external, input], [
    { kind: 'input', requestId: 'Q', status: 'resolved', payload: { token: 1 } },
    { kind: 'result', toolCallId: 'B', output: [{ type: 'text', text: 'ok' }], state: 'success', metadata: { m: 1 } },
    { kind: 'confirm', toolCallId: 'A', approved: true, reason: 'ignored with an approval' }
  ]), [
    { kind: 'confirm', toolCallId: 'A', approved: true, toolCall: { ...call('A'), state: 'allowed' } },
    { kind: 'result', toolCallId: 'B', toolName: 'write', output: [{ type: 'text', text: 'ok' }], state: 'success', metadata: { m: 1 }, toolCall: { ...call('B'), state: 'pending' } },
    { kind: 'input', requestId: 'Q', status: 'resolved', payload: { token: 1 } }
  ])
})

t.test('only the boolean true approves, and a denial keeps its reason', async (t) => {
  for (const approved of [false, 'true', 1, null, undefined, {}]) {
    t.strictSame(decisionsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved, reason: '  wrong folder ' }]), [{ kind: 'confirm', toolCallId: 'A', approved: false, toolCall: call('A'), reason: 'wrong folder' }])
  }
  for (const reason of [undefined, ' ', 5]) t.strictSame(decisionsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: false, reason }]), [{ kind: 'confirm', toolCallId: 'A', approved: false, toolCall: call('A') }])
})

t.test('edited arguments replace the stored ones whole and keep the call\'s metadata', async (t) => {
  const editedArgs = { path: 'b', deep: { n: 1 } }
  t.strictSame(decisionsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: true, editedArgs }], { tools }), [{
    kind: 'confirm', toolCallId: 'A', approved: true, editedArgs, toolCall: { ...call('A'), input: editedArgs, content: '{"path":"b","deep":{"n":1}}', state: 'allowed' }
  }])
  t.strictSame(editCall(call('A'), {}), { ...call('A'), input: {}, content: '{}' })
})

t.test('edited arguments are ignored with a denial, but must be an object in any case', async (t) => {
  t.strictSame(decisionsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: false, editedArgs: { path: 5 } }], { tools }), [{ kind: 'confirm', toolCallId: 'A', approved: false, toolCall: call('A') }])
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  for (const editedArgs of [null, 'x', 5, [], true, cyclic]) {
    for (const approved of [true, false]) t.strictSame(problemsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved, editedArgs }]), ['invalid-arguments A'])
  }
})

t.test('edited arguments must fit the tool\'s schema, if it is known', async (t) => {
  for (const editedArgs of [{}, { path: 5 }, { path: 'a', deep: { n: 1.5 } }]) {
    t.strictSame(problemsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: true, editedArgs }], { tools }), ['invalid-arguments A'])
    t.strictSame(problemsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: true, editedArgs }], { tools: [{ name: 'write' }, { name: 'other', parameters: false }] }), [])
  }
})

t.test('a call that a client sends is never used', async (t) => {
  const forged = { ...call('A'), name: 'delete', input: { path: '/' } }
  t.match(decisionsOf([confirm], [{ kind: 'confirm', toolCallId: 'A', approved: true, toolCall: forged }]), [{ toolCall: { ...call('A'), state: 'allowed' } }])
  t.match(decisionsOf([external], [{ kind: 'result', toolCallId: 'B', toolName: 'delete', output: [], state: 'success', toolCall: forged }]), [{ toolName: 'write', toolCall: call('B').input && { name: 'write' } }])
})

t.test('rules come along only where they are allowed, and only real ones', async (t) => {
  const answer = { kind: 'confirm', toolCallId: 'A', approved: true, rules: [{ tool_name: 'write', behavior: 'allow' }, { tool_name: '' }, 5] }
  t.notOk('rules' in (decisionsOf([confirm], [answer])[0] ?? {}))
  t.match(decisionsOf([confirm], [answer], { allowRules: true }), [{ rules: [{ tool_name: 'write', behavior: 'allow' }] }])
  t.notOk('rules' in (decisionsOf([confirm], [{ ...answer, rules: 5 }], { allowRules: true })[0] ?? {}))
})

t.test('unknown, duplicate, wrong and malformed decisions refuse the whole request', async (t) => {
  t.strictSame(problemsOf([confirm], [{ kind: 'confirm', toolCallId: 'X', approved: true }, { kind: 'confirm', toolCallId: 'A', approved: true }, { kind: 'confirm', toolCallId: 'A', approved: true }]), ['duplicate A', 'unknown X'])
  t.strictSame(problemsOf([confirm, external, input], [{ kind: 'result', toolCallId: 'A' }, { kind: 'confirm', toolCallId: 'B', approved: true }, { kind: 'confirm', toolCallId: 'Q', approved: true }]), ['wrong-kind A', 'wrong-kind B', 'wrong-kind Q'])
  t.strictSame(problemsOf([], [null, 5, [], {}, { kind: 'confirm', toolCallId: '' }, { kind: 'input', toolCallId: 'A' }]), Array(6).fill('malformed'))
})

t.test('unknown ones are named and duplicates settled where a protocol allows them', async (t) => {
  const resolved = resolveDecisions([confirm], [{ kind: 'confirm', toolCallId: 'X' }, { kind: 'confirm', toolCallId: 'A', approved: true }, { kind: 'confirm', toolCallId: 'A', approved: false }], { onUnknown: 'ignore', onDuplicate: 'last' })
  t.strictSame(resolved, { kind: 'resolved', decisions: [{ kind: 'confirm', toolCallId: 'A', approved: false, toolCall: call('A') }], denied: [], left: [], unknown: ['X'] })
})

t.test('what has no answer refuses the request, is denied, or stays open', async (t) => {
  const pending = [confirm, external, input]
  t.strictSame(problemsOf(pending, []), ['missing A', 'missing B', 'missing Q'])
  t.strictSame(resolveDecisions(pending, [], { onMissing: 'leave' }), { kind: 'resolved', decisions: [], denied: [], left: pending, unknown: [] })
  t.strictSame(resolveDecisions(pending, [], { onMissing: 'deny' }), {
    kind: 'resolved',
    decisions: [
      { kind: 'confirm', toolCallId: 'A', approved: false, toolCall: call('A') },
      { kind: 'result', toolCallId: 'B', toolName: 'write', output: [{ type: 'text', text: 'The tool was not executed.' }], state: 'interrupted', toolCall: { ...call('B'), state: 'pending' } },
      { kind: 'input', requestId: 'Q', status: 'cancelled' }
    ],
    denied: ['A', 'B', 'Q'],
    left: [],
    unknown: []
  })
})

t.test('results are read tolerantly: text, blocks, states', async (t) => {
  const outputs = [['text', [{ type: 'text', text: 'text' }]], [[{ type: 'text', text: 'a' }, 5], [{ type: 'text', text: 'a' }]], [undefined, []]] as const
  for (const [output, expected] of outputs) t.match(decisionsOf([external], [{ kind: 'result', toolCallId: 'B', output }]), [{ output: expected, state: 'success' }])
  for (const state of ['error', 'interrupted', 'denied']) t.match(decisionsOf([external], [{ kind: 'result', toolCallId: 'B', output: '', state }]), [{ state }])
  t.match(decisionsOf([external], [{ kind: 'result', toolCallId: 'B', output: '', state: 'running' }]), [{ state: 'success' }])
})

t.test('an input is resolved only when it says so, with a payload of plain JSON', async (t) => {
  t.strictSame(decisionsOf([input], [{ kind: 'input', requestId: 'Q', status: 'resolved' }]), [{ kind: 'input', requestId: 'Q', status: 'resolved' }])
  t.strictSame(decisionsOf([input], [{ kind: 'input', requestId: 'Q', status: 'cancelled', payload: 1 }]), [{ kind: 'input', requestId: 'Q', status: 'cancelled' }])
  t.strictSame(decisionsOf([input], [{ kind: 'input', requestId: 'Q' }]), [{ kind: 'input', requestId: 'Q', status: 'cancelled' }])
})
