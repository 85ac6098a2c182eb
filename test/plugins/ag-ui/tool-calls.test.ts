import t from 'tap'
import { type AgentEventInit } from '../../../lib/agent/index.ts'
import { type ResumedCall } from '../../../plugins/ag-ui/resumed-run.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { type RunEnd } from '../../../plugins/ag-ui/terminal.ts'
import { between, call, input, legacyInput, message, result, terminal, text } from './project.ts'

const asked: NormalisedInput['messages'] = [
  { id: 'a1', role: 'assistant', toolCalls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }] }
]
const answered: NormalisedInput['messages'] = [...asked, { id: 't1', role: 'tool', toolCallId: 'c1', content: 'ok' }]
const start = (toolCallId: string, toolCallName = 'f', replyId = 'r'): AgentEventInit => ({ type: 'TOOL_CALL_START', replyId, toolCallId, toolCallName })
const args = (toolCallId: string, delta: string): AgentEventInit => ({ type: 'TOOL_CALL_DELTA', replyId: 'r', toolCallId, delta })

t.test('parallel calls of one reply share a message and keep their arguments apart', async (t) => {
  t.strictSame(between([start('A'), start('B'), args('B', '{"b":'), args('A', '{"a":1}'), args('B', '2}')]), [
    { type: 'TOOL_CALL_START', toolCallId: 'A', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_START', toolCallId: 'B', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'B', delta: '{"b":' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'A', delta: '{"a":1}' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'B', delta: '2}' },
    { type: 'TOOL_CALL_END', toolCallId: 'A' },
    { type: 'TOOL_CALL_END', toolCallId: 'B' }
  ])
})

t.test('a call belongs to the text of its reply, and after a result to a message of its own', async (t) => {
  const parents = between([
    text('r', 'x'), ...call('r', 'c1', 'f'), ...call('r', 'c2', 'f'), ...result('act', 'c1', '1'), ...call('r', 'c3', 'f')
  ]).flatMap((event) => event.type === 'TOOL_CALL_START' ? [event.parentMessageId] : [])
  t.strictSame(parents, ['r', 'r', 'r:c3'])
})

t.test('text after a call that opened the reply\'s message does not move in front of the call', async (t) => {
  const ids = between([...call('r', 'c1', 'f'), text('r', 'done')]).flatMap((event) => event.type === 'TEXT_MESSAGE_START' ? [event.messageId] : [])
  t.strictSame(ids, ['r:text'])
})

t.test('what repeats itself is told once', async (t) => {
  t.strictSame(between([start('c'), start('c', 'other'), args('c', '{}'), { type: 'TOOL_CALL_END', toolCallId: 'c' }, { type: 'TOOL_CALL_END', toolCallId: 'c' }, start('c'), args('c', '{}')]), [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' }
  ])
})

t.test('arguments of unknown calls, and empty ones, are left out', async (t) => {
  t.strictSame(between([args('nobody', '{}'), start('c'), args('c', ''), { type: 'TOOL_CALL_END', toolCallId: 'nobody' }]), [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' }
  ])
})

t.test('a call without an id is left out, and said so once', async (t) => {
  const warnings: string[] = []
  const events = between([
    start(' '), start(''), { type: 'TOOL_RESULT_END', toolCallId: '', state: 'success' }
  ], {}, { warn: (reason) => { warnings.push(reason) } })
  t.strictSame(events, [])
  t.strictSame(warnings, ['TOOL_CALL_START without an id, left out', 'TOOL_RESULT_END without an id, left out'])
})

t.test('a tool without a name is unknown', async (t) => {
  t.strictSame(between([start('c', ' ')])[0], { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'unknown', parentMessageId: 'r' })
})

t.test('internal tools are not told at all', async (t) => {
  t.strictSame(between([
    ...call('r', 'c', '__plan'), ...result('act', 'c', 'x'), { type: 'TOOL_RESULT_END', toolCallId: 'd', toolCallName: '__other', state: 'success' }
  ]), [])
})

t.test('emitToolCallArgs: false keeps arguments back, but never those the page needs to run its tool', async (t) => {
  const page = { input: { ...input, tools: [{ name: 'paint', description: '' }] } }
  const types = between([...call('r', 'a', 'search'), ...call('r', 'b', 'paint'), { ...start('c', 'other'), executor: 'client' } as AgentEventInit, args('c', '1')], { emitToolCallArgs: false }, page)
    .flatMap((event) => event.type === 'TOOL_CALL_ARGS' ? [event.toolCallId] : [])
  t.strictSame(types, ['b', 'c'])
})

t.test('a result', async (t) => {
  const only = (events: readonly AgentEventInit[], run = {}): unknown => between(events, {}, run).find(({ type }) => type === 'TOOL_CALL_RESULT')

  t.test('ends its call, is told whole, and has an id of its own in the batch', async (t) => {
    t.strictSame(between([
      start('a'), start('b'),
      { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'b', delta: 'B1' },
      { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'a', delta: 'A' },
      { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'b', delta: 'B2' },
      { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'a', state: 'success' },
      { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'b', state: 'success' }
    ]).slice(2), [
      { type: 'TOOL_CALL_END', toolCallId: 'a' },
      { type: 'TOOL_CALL_RESULT', messageId: 'act:a', toolCallId: 'a', content: 'A', role: 'tool' },
      { type: 'TOOL_CALL_END', toolCallId: 'b' },
      { type: 'TOOL_CALL_RESULT', messageId: 'act:b', toolCallId: 'b', content: 'B1B2', role: 'tool' }
    ])
  })

  t.test('without text is an empty string, and a denial says so', async (t) => {
    t.strictSame(only(result('act', 'c', '')), { type: 'TOOL_CALL_RESULT', messageId: 'act:c', toolCallId: 'c', content: '', role: 'tool' })
    t.strictSame(only(result('act', 'c', '', 'denied')), {
      type: 'TOOL_CALL_RESULT', messageId: 'act:c', toolCallId: 'c', content: 'Permission denied by user', role: 'tool', metadata: { 'agentscope.toolState': 'DENIED' }
    })
  })

  t.test('that went wrong keeps its text and names its state', async (t) => {
    t.match(only(result('act', 'c', 'boom', 'error')), { content: 'boom', metadata: { 'agentscope.toolState': 'ERROR' } })
    t.match(only(result('act', 'c', 'cut', 'interrupted')), { content: 'cut', metadata: { 'agentscope.toolState': 'INTERRUPTED' } })
  })

  t.test('that waits for its answer is none', async (t) => {
    t.strictSame(between([start('c'), ...result('act', 'c', 'waiting', 'running')]).at(-1), { type: 'TOOL_CALL_END', toolCallId: 'c' })
  })

  t.test('is told once', async (t) => {
    t.equal(between([start('c'), ...result('act', 'c', '1'), ...result('act', 'c', '2')]).filter(({ type }) => type === 'TOOL_CALL_RESULT').length, 1)
  })

  t.test('of a call of an earlier run is told, and its call is not told again', async (t) => {
    t.strictSame(between([...call('r', 'c1', 'f'), ...result('act', 'c1', 'ok')], {}, { input: { ...input, messages: asked } }), [
      { type: 'TOOL_CALL_RESULT', messageId: 'act:c1', toolCallId: 'c1', content: 'ok', role: 'tool' }
    ])
    t.strictSame(between([...call('r', 'c9', 'f'), ...result('', 'c9', 'ok')], {}, { knownCalls: new Set(['c9']) }), [
      { type: 'TOOL_CALL_RESULT', messageId: 'c9', toolCallId: 'c9', content: 'ok', role: 'tool' }
    ])
  })

  t.test('with media is parts for a 1.0 client and text for one before it', async (t) => {
    const events: AgentEventInit[] = [
      start('c'),
      { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c', delta: 'see' },
      { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } } },
      { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'data', id: 'd', name: 'a.pdf', source: { type: 'url', url: 'https://x/a.pdf', mime_type: 'application/pdf' } } },
      { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'data', source: { type: 'url', url: 'https://x/v', mime_type: 'video/mp4' } } },
      { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'text', text: 'and' } },
      { type: 'TOOL_RESULT_DATA_DELTA', toolCallId: 'c', data: { type: 'hint', hint: 'h' } },
      { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'c', state: 'success' }
    ]
    t.match(only(events), {
      content: [
        { type: 'text', text: 'see' },
        { type: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
        { type: 'document', source: { type: 'url', value: 'https://x/a.pdf', mimeType: 'application/pdf' }, id: 'd', metadata: { filename: 'a.pdf' } },
        { type: 'video', source: { type: 'url', value: 'https://x/v', mimeType: 'video/mp4' } },
        { type: 'text', text: 'and' },
        { type: 'text', text: '{"type":"hint","hint":"h"}' }
      ]
    })
    t.match(only(events, { input: legacyInput }), {
      content: 'see\n[image: image/png]\n[document: https://x/a.pdf]\n[video: https://x/v]\nand\n{"type":"hint","hint":"h"}'
    })
  })
})

t.test('a call under an id that has been answered is another call, under an id of its own', async (t) => {
  t.strictSame(between([...call('r', 'c1', 'f'), ...result('act', 'c1', 'new')], {}, { input: { ...input, messages: answered } }), [
    { type: 'TOOL_CALL_START', toolCallId: 'c1:rn-1', toolCallName: 'f', parentMessageId: 'r' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1:rn-1', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1:rn-1' },
    { type: 'TOOL_CALL_RESULT', messageId: 'act:c1', toolCallId: 'c1:rn-1', content: 'new', role: 'tool' }
  ])
  const ids = between([...call('r', 'c', 'f'), ...result('act', 'c', '1'), ...call('r2', 'c', 'f'), ...result('act2', 'c', '2')])
    .flatMap((event) => event.type === 'TOOL_CALL_RESULT' ? [event.toolCallId] : [])
  t.strictSame(ids, ['c', 'c:2'])
})

t.test('a run that waits for tools of the page', async (t) => {
  const page = { ...input, tools: [{ name: 'paint', description: '' }] }
  const legacyPage = { ...legacyInput, tools: page.tools }
  const events = [...call('r', 'c1', 'search'), ...call('r', 'c2', 'paint'), ...result('act', 'c1', 'x'), ...result('act', 'c2', '', 'running'), ...call('r', 'c3', 'paint')]
  const pending = ['c2', 'c3'].map((id) => ({ kind: 'external' as const, replyId: 'r', toolCall: { type: 'tool_use' as const, id, name: 'paint', input: {} } }))
  const paused = { kind: 'paused' as const, pending, interrupts: [], message: { id: 'm', role: 'ASSISTANT' as const, content: [] } }

  t.test('succeeds with the calls pending, for a 1.0 client', async (t) => {
    t.strictSame(terminal(paused, {}, { input: page }, events), {
      type: 'RUN_FINISHED', threadId: 'th-7', runId: 'rn-1', outcome: { type: 'success', pendingToolCallIds: ['c2', 'c3'] }
    })
  })

  t.test('says nothing of it to a client before 1.0', async (t) => {
    t.strictSame(terminal(paused, {}, { input: legacyPage }, events), { type: 'RUN_FINISHED', threadId: 'th-7', runId: 'rn-1' })
  })

  t.test('ends in interrupts where the reference\'s way is asked for', async (t) => {
    t.match(terminal(paused, { frontendToolOutcome: 'interrupt' }, { input: page }, events), {
      outcome: { type: 'interrupt', interrupts: [{ id: 'r:c2', reason: 'tool_call', toolCallId: 'c2' }, { id: 'r:c3' }] }
    })
  })

  t.test('and for a decision as well is interrupted for the decision alone', async (t) => {
    const mixed = { ...paused, pending: [...pending, { kind: 'confirm' as const, replyId: 'r', toolCall: { type: 'tool_use' as const, id: 'c4', name: 'rm', input: {} } }] }
    const last = terminal(mixed, {}, { input: page }, events)
    t.strictSame(last?.type === 'RUN_FINISHED' && last.outcome?.type === 'interrupt' && last.outcome.interrupts.map(({ id }) => id), ['r:c4'])
  })

  t.test('takes the agent\'s word over the name for where a call runs', async (t) => {
    const own = { type: 'TOOL_CALL_START', replyId: 'r', toolCallId: 'c2', toolCallName: 'paint', executor: 'agent' } as const
    t.match(terminal({ ...paused, pending: pending.slice(0, 1) }, {}, { input: page }, [own]), { outcome: { type: 'interrupt', interrupts: [{ id: 'r:c2' }] } })
  })
})

t.test('calls that were answered for this run', async (t) => {
  const output = [{ type: 'text' as const, text: 'from outside' }]
  const outside: ResumedCall = { id: 'c1', wireId: 'c1', result: { messageId: 'agui-resume-r:c1', output, state: 'success' } }
  const told = { type: 'TOOL_CALL_RESULT', messageId: 'agui-resume-r:c1', toolCallId: 'c1', content: 'from outside', role: 'tool' }
  const asking: NormalisedInput = { ...input, messages: asked }
  const of = (events: readonly AgentEventInit[], resumed: ResumedCall, end?: RunEnd): unknown => between(events, {}, { input: asking, resumed: [resumed] }, end)

  t.test('tell the arguments that they ran with, beside the state', async (t) => {
    const edited: ResumedCall = { id: 'c1', wireId: 'c1', editedArgs: { a: 1 } }
    t.match(of(result('act', 'c1', 'ok'), edited), [{ content: 'ok', metadata: { 'agentscope.editedArgs': { a: 1 } } }])
    t.match(of(result('act', 'c1', 'boom', 'error'), edited), [{ metadata: { 'agentscope.editedArgs': { a: 1 }, 'agentscope.toolState': 'ERROR' } }])
  })

  t.test('get their result from outside where the agent tells none, after everything that is open', async (t) => {
    t.strictSame(of([text('r2', 'Thanks')], outside), [
      { type: 'TEXT_MESSAGE_START', messageId: 'r2', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r2', delta: 'Thanks' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r2' },
      told
    ])
    t.match(of([text('r2', 'x')], { ...outside, result: { messageId: 'm', output: [], state: 'interrupted' } }), [{}, {}, {}, { content: '', metadata: { 'agentscope.toolState': 'INTERRUPTED' } }])
    t.match(of([text('r2', 'x')], outside, { kind: 'failed', error: { code: 'x', message: 'x' } }), [{}, {}, {}, told])
  })

  t.test('get it once, and in the agent\'s own words', async (t) => {
    t.strictSame(of([...result('act', 'c1', 'own'), ...result('act', 'c1', 'again')], outside), [{ ...told, messageId: 'act:c1', content: 'own' }])
  })

  t.test('get none where their client has it, where they wait again, and where no agent was asked', async (t) => {
    t.strictSame(of(result('act', 'c1', 'own'), { ...outside, isTold: true }), [])
    t.strictSame(of([{ type: 'CUSTOM', name: 'x', value: {} }], { ...outside, isTold: true }), [{ type: 'CUSTOM', name: 'x', value: {} }])
    const pending: RunEnd = { kind: 'paused', message, interrupts: [], pending: [{ kind: 'external', replyId: 'r', toolCall: { type: 'tool_use', id: 'c1', name: 'f', input: {} } }] }
    t.strictSame(of([{ type: 'AGENT_START' }], outside, pending), [])
    t.strictSame(of([], outside, { kind: 'failed', error: { code: 'x', message: 'x' } }), [])
  })

  t.test('are another call when they are made again', async (t) => {
    const again = [...result('act', 'c1', 'own'), ...call('r2', 'c1', 'f'), ...result('act2', 'c1', 'second')]
    t.match(of(again, outside), [
      { type: 'TOOL_CALL_RESULT', toolCallId: 'c1', content: 'own' },
      { type: 'TOOL_CALL_START', toolCallId: 'c1:rn-1' }, { type: 'TOOL_CALL_ARGS' }, { type: 'TOOL_CALL_END' },
      { type: 'TOOL_CALL_RESULT', toolCallId: 'c1:rn-1', content: 'second' }
    ])
  })

  t.test('keep the id that their client knows them by', async (t) => {
    const renamed: ResumedCall = { id: 'c', wireId: 'c:before' }
    const messages: NormalisedInput['messages'] = [
      { id: 'a0', role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }, { id: 't0', role: 'tool', toolCallId: 'c', content: 'old' },
      { id: 'a1', role: 'assistant', toolCalls: [{ id: 'c:before', type: 'function', function: { name: 'f', arguments: '{}' } }] }
    ]
    const run = { input: { ...input, messages }, resumed: [renamed], knownCalls: new Set(['c']) }
    t.match(between(result('act', 'c', 'ok'), {}, run), [{ toolCallId: 'c:before', content: 'ok' }])
    t.match(between([...call('r', 'c', 'f'), ...result('act', 'c', 'ok')], {}, run), [{ type: 'TOOL_CALL_RESULT', toolCallId: 'c:before' }])
    const pending: RunEnd = { kind: 'paused', message, interrupts: [], pending: [{ kind: 'confirm', replyId: 'r', toolCall: { type: 'tool_use', id: 'c', name: 'f', input: {} } }] }
    t.match(terminal(pending, {}, run), { outcome: { interrupts: [{ id: 'r:c', toolCallId: 'c:before' }] } })
    // A child's call is another one.
    t.match(between([{ type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'success', source: 'main/child' }], { subagentEvents: 'flatten' }, run), [{ toolCallId: 'c' }])
  })
})
