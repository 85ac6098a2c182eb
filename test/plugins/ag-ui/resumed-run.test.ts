import t from 'tap'
import { type Interrupt } from '../../../plugins/ag-ui/event-schemas.ts'
import { type AnsweredInterrupt } from '../../../plugins/ag-ui/resume.ts'
import { answersByCall, resumedCalls, resumedInput, type ThreadView, viewOf } from '../../../plugins/ag-ui/resumed-run.ts'
import { type Message, type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'

const interrupt = (id: string, toolCallId?: string): Interrupt => ({ id, reason: 'tool_call', ...toolCallId !== undefined && { toolCallId } })
const approved: AnsweredInterrupt = { decision: { kind: 'confirm', toolCallId: 'a', approved: true, editedArgs: { x: 1 } }, interrupt: interrupt('i-a', 'wire-a'), isTold: false }
const denied: AnsweredInterrupt = { decision: { kind: 'confirm', toolCallId: 'b', approved: false }, interrupt: interrupt('i-b'), isTold: false }
const result: AnsweredInterrupt = {
  decision: { kind: 'result', toolCallId: 'c', toolName: 'f', output: [{ type: 'text', text: 'x' }], state: 'success', metadata: { m: 1 } }, interrupt: interrupt('i-c', 'c'), isTold: true
}
const bare: AnsweredInterrupt = { decision: { kind: 'result', toolCallId: 'd', output: [], state: 'interrupted' }, interrupt: interrupt('i-d', 'd'), isTold: false }
const input: AnsweredInterrupt = { decision: { kind: 'input', requestId: 'q', status: 'resolved', payload: 1 }, interrupt: interrupt('i-q', 'q-call'), isTold: false }
const all = [approved, denied, result, bare, input]

t.test('the stream learns of calls, not of questions', async (t) => {
  t.strictSame(resumedCalls(all), [
    { id: 'a', wireId: 'wire-a', editedArgs: { x: 1 } },
    { id: 'b', wireId: 'b' },
    { id: 'c', wireId: 'c', result: { messageId: 'agui-resume-i-c', output: [{ type: 'text', text: 'x' }], state: 'success' }, isTold: true },
    { id: 'd', wireId: 'd', result: { messageId: 'agui-resume-i-d', output: [], state: 'interrupted' } }
  ])
})

t.test('the agent\'s transcript gets results under the client\'s ids, and nothing yet for approvals', async (t) => {
  t.strictSame([...answersByCall(all)], [
    ['wire-a', undefined],
    ['c', { id: 'agui-resume-i-c', role: 'TOOL', content: [{ type: 'tool_result', id: 'c', name: 'f', output: [{ type: 'text', text: 'x' }], state: 'success' }], metadata: { m: 1 } }],
    ['d', { id: 'agui-resume-i-d', role: 'TOOL', content: [{ type: 'tool_result', id: 'd', output: [], state: 'interrupted' }] }]
  ])
})

const tool = (toolCallId: string): Message => ({ id: `t-${toolCallId}`, role: 'tool', toolCallId, content: 'made up' })
const request: NormalisedInput = { threadId: 'thread', runId: 'two', messages: [], tools: [], context: [] }
const paused: NormalisedInput = { ...request, runId: 'one', tools: [{ name: 'paint', description: '' }], context: [{ description: 'd', value: 'v' }], forwardedProps: { secret: 1 } }
const view: ThreadView = { messages: [{ id: 'u1', role: 'user', content: 'Hi' }, tool('wire-a')], state: { value: { n: 1 } }, interrupts: new Map(), request: paused }

t.test('a request with its own messages is run as it is, without results of what waits for an approval', async (t) => {
  const messages: Message[] = [tool('wire-a'), tool('c'), tool('other')]
  t.strictSame(resumedInput({ ...request, messages }, all, view), { ...request, messages: messages.slice(1) })
})

t.test('a request without messages goes on where the thread stands', async (t) => {
  t.strictSame(resumedInput(request, all, view), {
    ...request, messages: view.messages.slice(0, 1), tools: paused.tools, context: paused.context, state: { n: 1 }
  })
  const own = { ...request, tools: [{ name: 'own', description: '' }], context: [{ description: 'own', value: '' }], state: null }
  t.strictSame(resumedInput(own, [], view), { ...own, messages: view.messages })
  t.strictSame(resumedInput(request, [], { messages: [], state: undefined, interrupts: new Map(), request: undefined }), request)
})

t.test('a thread without a run, or whose run keeps no fold, shows nothing', async (t) => {
  const nothing = { messages: [], state: undefined, interrupts: new Map(), request: undefined }
  t.strictSame(viewOf(undefined), nothing)
  t.strictSame(viewOf({ snapshot: () => undefined, record: { input: paused } } as never), { ...nothing, request: paused })
})
