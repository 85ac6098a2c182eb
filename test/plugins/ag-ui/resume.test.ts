import t from 'tap'
import { type Pending } from '../../../lib/agent/index.ts'
import { type InterruptRecord } from '../../../lib/stores/index.ts'
import { type Interrupt } from '../../../plugins/ag-ui/event-schemas.ts'
import { interruptOf } from '../../../plugins/ag-ui/interrupts.ts'
import { type Resume, type ResumeOptions, resumeOf } from '../../../plugins/ag-ui/resume.ts'
import { type Message, type NormalisedInput, type ResumeEntry } from '../../../plugins/ag-ui/schemas.ts'

const run = { owner: {}, protocol: 'ag-ui', id: 'paused' }
const strict: ResumeOptions = { lenientUnknown: false, strictResponseSchema: false }

function record (pending: Pending, more: Partial<InterruptRecord> = {}): InterruptRecord {
  const call = pending.kind === 'input' ? pending.request.id : pending.toolCall.id
  return { id: `r:${call}`, kind: pending.kind, pending, createdAt: 1, run, session: 'thread', state: 'open', ...more }
}

const call = (id: string, metadata?: object): Extract<Pending, { toolCall: unknown }>['toolCall'] => ({
  type: 'tool_use', id, name: 'f', input: { a: 1 }, content: '{"a":1}', ...metadata !== undefined && { metadata: metadata as Record<string, never> }
})
const confirm = (id: string, metadata?: object): InterruptRecord => record({ kind: 'confirm', replyId: 'r', toolCall: call(id, metadata) })
const external = (id: string, metadata?: object): InterruptRecord => record({ kind: 'external', replyId: 'r', toolCall: call(id, metadata) })
const question = (id: string, more: object = {}): InterruptRecord => record({ kind: 'input', replyId: 'r', request: { id, reason: 'acme:x', ...more } })

function answer (open: readonly InterruptRecord[], resume: ResumeEntry[] | undefined, options: Partial<ResumeOptions> = {}, messages: Message[] = [], told: readonly Interrupt[] = []): Resume {
  const input: NormalisedInput = { threadId: 'thread', runId: 'run', messages, tools: [], context: [], ...resume !== undefined && { resume } }
  return resumeOf(input, open, new Map(told.map((interrupt) => [interrupt.id, interrupt])), { ...strict, ...options })
}

const resolved = (interruptId: string, payload?: unknown): ResumeEntry => ({ interruptId, status: 'resolved', ...payload !== undefined && { payload } })
const cancelled = (interruptId: string): ResumeEntry => ({ interruptId, status: 'cancelled' })

t.test('nothing open and nothing answered is nothing', async (t) => {
  t.strictSame(answer([], undefined), { kind: 'none' })
  t.strictSame(answer([], []), { kind: 'none' })
  t.strictSame(answer([], [resolved('x')], { lenientUnknown: true }), { kind: 'none' })
})

t.test('the claim names the open interrupts and the run that asked, in the order in which it asked', async (t) => {
  const result = answer([confirm('a'), external('b'), question('c')], [resolved('r:c', { name: 'x' }), cancelled('r:b'), resolved('r:a', { approved: true })])
  t.match(result, {
    kind: 'answered',
    answers: {
      claim: {
        run: 'paused',
        interrupts: ['r:a', 'r:b', 'r:c'],
        decisions: [
          { kind: 'confirm', toolCallId: 'a', approved: true },
          { kind: 'result', toolCallId: 'b', state: 'interrupted', output: [{ type: 'text', text: 'The tool call was cancelled by the user.' }], metadata: { 'agui.interruptId': 'r:b', 'agui.resumeStatus': 'cancelled' } },
          { kind: 'input', requestId: 'c', status: 'resolved', payload: { name: 'x' } }
        ]
      }
    }
  })
  if (result.kind !== 'answered') return
  const { answered, claim } = result.answers
  t.strictSame(answered.map(({ decision }) => decision), claim.decisions)
  t.strictSame(answered.map(({ interrupt }) => interrupt), [confirm('a'), external('b'), question('c')].map(({ id, pending }) => interruptOf(pending, { id })))
  t.strictSame(answered.map(({ isTold }) => isTold), [false, false, false])
})

t.test('a cancelled question has no payload', async (t) => {
  t.match(answer([question('c')], [{ ...cancelled('r:c'), payload: 1 }]), { answers: { claim: { decisions: [{ kind: 'input', requestId: 'c', status: 'cancelled', payload: undefined }] } } })
})

t.test('the interrupt as it was told wins over the one that would be told now', async (t) => {
  const told: Interrupt = { id: 'r:b', reason: 'tool_call', toolCallId: 'wire-b', message: 'As told' }
  const result = answer([external('b')], [resolved('r:b', 'x')], {}, [{ id: 't', role: 'tool', toolCallId: 'wire-b', content: 'x' }], [told])
  t.match(result, { answers: { answered: [{ interrupt: told, isTold: true, decision: { toolCallId: 'b' } }] } })
  // An enricher may have left the call out of it.
  const { toolCallId, ...bare } = told
  t.match(answer([external('b')], undefined, {}, [{ id: 't', role: 'tool', toolCallId: 'b', content: 'x' }], [bare]), { answers: { answered: [{ interrupt: bare, isTold: true }] } })
})

t.test('the contract is checked in its order: what is open, doubles, the set, time, schema, arguments', async (t) => {
  const schema = { responseSchema: { type: 'string' } }
  const expired: InterruptRecord = { ...confirm('a'), state: 'expired' }
  const open = [expired, external('b', schema)]
  const message = (entries: ResumeEntry[], of = open): string => {
    const result = answer(of, entries)
    return result.kind === 'refused' ? `${result.code}: ${result.message}` : result.kind
  }
  const bad = resolved('r:a', { approved: true, editedArgs: 'x' })
  t.match(message([bad, bad, resolved('x')]), /^AGUI_INTERRUPT_CONTRACT_ERROR: resume answers an interrupt more than once: r:a\.$/)
  t.match(message([bad, resolved('x')]), /Missing: r:b\. Unknown: x\.$/)
  t.match(message([bad, resolved('r:b', 1)]), /expired and can only be cancelled: r:a\.$/)
  t.match(message([cancelled('r:a'), resolved('r:b', 1)]), /^AGUI_INTERRUPT_CONTRACT_ERROR: The payload for r:b does not fit/)
  t.match(message([bad, resolved('r:b', 'x')], [confirm('a'), external('b', schema)]), /^INVALID_INPUT_ERROR: The edited arguments of a must be an object\.$/)
  t.equal(message([cancelled('r:a'), resolved('r:b', 'x')]), 'answered')
})

t.test('an approval with a schema of its own stays lenient, unless all are strict', async (t) => {
  const own = confirm('a', { responseSchema: { type: 'object', required: ['comment'] } })
  t.match(answer([own], [resolved('r:a', { approved: true })]), { kind: 'answered' })
  t.match(answer([own], [resolved('r:a', { approved: true })], { strictResponseSchema: true }), { kind: 'refused', code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
  t.match(answer([own], [resolved('r:a', { approved: true, comment: '' })], { strictResponseSchema: true }), { kind: 'answered' })
})

t.test('tool messages answer what is executed outside, and only all of it', async (t) => {
  const message = (toolCallId: string, more: object = {}): Message => ({ id: `t-${toolCallId}`, role: 'tool', toolCallId, content: 'done', ...more })
  t.match(answer([external('a'), external('b')], undefined, {}, [message('a')]), { kind: 'refused' })
  t.match(answer([external('a'), confirm('b')], undefined, {}, [message('a'), message('b')]), { kind: 'refused' })
  t.match(answer([external('a'), question('b')], undefined, {}, [message('a')]), { kind: 'refused' })
  // The schema is for payloads: what a page's tool returns is what it returns.
  const schema = { responseSchema: { type: 'number' } }
  t.match(answer([external('a', schema), external('b')], undefined, {}, [message('a'), message('b', { content: '', error: 'broken' })]), {
    kind: 'answered',
    answers: {
      claim: { decisions: [{ output: [{ text: 'done' }], state: 'success' }, { output: [{ text: 'broken' }], state: 'error' }] },
      answered: [{ isTold: true }, { isTold: true }]
    }
  })
})
