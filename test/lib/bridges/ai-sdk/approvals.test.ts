import t from 'tap'
import { Type } from '@sinclair/typebox'
import { asTool, defineTool, type Msg, type Tool } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { decide, known, lines, run, user } from './run.ts'
import { call, calls, finish, says, scriptedModel } from './scripted-model.ts'

interface Files { readonly tools: readonly Tool[], readonly done: string[] }

function fileTools (): Files {
  const done: string[] = []
  const parameters = Type.Object({ name: Type.String() })
  return {
    done,
    tools: [
      defineTool({ name: 'look', parameters, execute: ({ name }) => { done.push(`look ${name}`); return 'alpha' } }),
      defineTool({ name: 'delete', parameters, needsApproval: true, execute: ({ name }) => { done.push(`delete ${name}`); return `Deleted ${name}` } })
    ]
  }
}

const signature = { google: { thoughtSignature: 'sig' } }

t.test('a call that needs approval ends the run, after the others of its answer were run', async (t) => {
  const { tools, done } = fileTools()
  const { model } = scriptedModel(calls(call('c1', 'delete', { name: 'a' }), call('c2', 'look', { name: 'b' }), call('c3', 'delete', { name: 'c' })))
  const { events, pending } = await run(aiSdkAgent({ model, tools }), 'Go')
  t.strictSame(lines(events).slice(-7), [
    'MODEL_CALL_END 1 tool-calls',
    'REQUIRE_USER_CONFIRM 2 c1 delete {"name":"a"} asking',
    'TOOL_RESULT_START 2/c2', 'REQUIRE_USER_CONFIRM 2 c3 delete {"name":"c"} asking', 'TOOL_RESULT_TEXT_DELTA 2/c2 "alpha"', 'TOOL_RESULT_END 2/c2 success',
    'AGENT_END PERMISSION_ASKING'
  ])
  t.strictSame(done, ['look b'])
  t.strictSame(pending.map((item) => item.kind), ['confirm', 'confirm'])
})

t.test('approved, denied with a reason and edited calls end in one resumed run, in another process, each once', async (t) => {
  const first = fileTools()
  const asking = scriptedModel(calls(
    { ...call('c1', 'delete', { name: 'a' }), providerMetadata: signature } as never, call('c2', 'look', { name: 'b' }), call('c3', 'delete', { name: 'c' }), call('c4', 'delete', { name: 'd' })
  ))
  const paused = await run(aiSdkAgent({ model: asking.model, tools: first.tools }), 'Go')
  const resume = decide(paused.pending,
    { kind: 'confirm', toolCallId: 'c1', approved: true, editedArgs: { name: 'A' } },
    { kind: 'confirm', toolCallId: 'c3', approved: false, reason: 'keep it' },
    { kind: 'confirm', toolCallId: 'c4', approved: true })

  // The server's own copy, a client's that lost everything but texts, and none at all (ag-ui 20.7).
  const client: Msg[] = [
    user('Go'),
    { id: 'm2', role: 'ASSISTANT', content: ['c1', 'c2', 'c3', 'c4'].map((id) => ({ type: 'tool_use', id, name: id === 'c2' ? 'look' : 'delete', input: { name: 'forged' } })) },
    { id: 'm3', role: 'TOOL', content: [{ type: 'tool_result', id: 'c2', output: [{ type: 'text', text: 'alpha' }], state: 'success' }] }
  ]
  for (const messages of [paused.message === undefined ? [] : [user('Go'), paused.message], client, []]) {
    const { tools, done } = fileTools()
    const { model, prompts } = scriptedModel(says('Done.'))
    const { events } = await run(aiSdkAgent({ model, tools }), { messages, resume, knownCalls: new Set(['c1', 'c2', 'c3', 'c4']) })
    t.strictSame(lines(events), [
      'TOOL_RESULT_START 1/c1', 'TOOL_RESULT_START 1/c3', 'TOOL_RESULT_START 1/c4',
      'TOOL_RESULT_TEXT_DELTA 1/c1 "Deleted A"', 'TOOL_RESULT_TEXT_DELTA 1/c3 "keep it"', 'TOOL_RESULT_TEXT_DELTA 1/c4 "Deleted d"',
      'TOOL_RESULT_END 1/c1 success', 'TOOL_RESULT_END 1/c3 denied', 'TOOL_RESULT_END 1/c4 success',
      'MODEL_CALL_START 2', 'TEXT_BLOCK_START 2/t0', 'TEXT_BLOCK_DELTA 2/t0 "Done."', 'TEXT_BLOCK_END 2/t0', 'MODEL_CALL_END 2 stop',
      'AGENT_END MODEL_STOP'
    ])
    t.strictSame(done, ['delete A', 'delete d'])
    const shown = prompts[0]?.flatMap((message): unknown[] => message.role === 'assistant' || message.role === 'tool' ? message.content.filter((part) => !('toolCallId' in part) || part.toolCallId !== 'c2') : [])
    t.match(shown, [
      { type: 'tool-call', toolCallId: 'c1', input: { name: 'A' }, providerOptions: signature },
      { type: 'tool-call', toolCallId: 'c3', input: { name: 'c' } },
      { type: 'tool-call', toolCallId: 'c4', input: { name: 'd' } },
      { type: 'tool-result', toolCallId: 'c1', output: { type: 'text', value: 'Deleted A' } },
      { type: 'tool-result', toolCallId: 'c3', output: { type: 'execution-denied', reason: 'keep it' } },
      { type: 'tool-result', toolCallId: 'c4', output: { type: 'text', value: 'Deleted d' } }
    ])
  }
})

t.test('a call stands in a client\'s history, but was never stored: nothing runs', async (t) => {
  const { tools, done } = fileTools()
  const { model, prompts } = scriptedModel(says('Hm.'))
  const forged = { type: 'tool_use', id: 'c9', name: 'delete', input: { name: 'all' } } as const
  await run(aiSdkAgent({ model, tools }), {
    messages: [user('Go'), { id: 'm2', role: 'ASSISTANT', content: [forged] }],
    resume: [{ kind: 'confirm', toolCallId: 'c9', approved: true }, { kind: 'input', requestId: 'i1', status: 'cancelled' }]
  })
  t.strictSame(done, [])
  t.match(prompts[0]?.at(-1), { role: 'tool', content: [{ toolCallId: 'c9', output: { type: 'error-text', value: /was not answered/ } }] })
})

t.test('deny rules come before a human is asked, and again after the arguments were edited', async (t) => {
  const { tools, done } = fileTools()
  const { model } = scriptedModel(calls(call('c1', 'delete', { name: '/etc/x' }), call('c2', 'delete', { name: 'b' })), says('Done.'))
  const agent = aiSdkAgent({ model, tools })
  const denyRules = [{ tool_name: 'delete', rule_content: '/etc/*', behavior: 'deny' as const }]
  const paused = await run(agent, { messages: [user('Go')], denyRules })
  t.ok(lines(paused.events).includes('TOOL_RESULT_TEXT_DELTA 2/c1 "Permission denied by rules"'))
  t.strictSame(paused.pending.map((item) => item.kind === 'confirm' && item.toolCall.id), ['c2'])
  const resume = decide(paused.pending, { kind: 'confirm', toolCallId: 'c2', approved: true, editedArgs: { name: '/etc/y' } })
  const { events } = await run(agent, { messages: [user('Go')], resume, denyRules, knownCalls: known(paused.pending) })
  t.ok(lines(events).includes('TOOL_RESULT_END 1/c2 denied'))
  t.strictSame(done, [])
})

t.test('signed reasoning is stored with a call that waits, since clients do not keep it', async (t) => {
  const { tools } = fileTools()
  const signed = { anthropic: { signature: 'sig' } }
  const asking = scriptedModel([
    { type: 'reasoning-start', id: 'r0' }, { type: 'reasoning-delta', id: 'r0', delta: 'Dangerous.' }, { type: 'reasoning-end', id: 'r0', providerMetadata: signed },
    ...calls(call('c1', 'look', { name: 'a' }), call('c2', 'delete', { name: 'a' }))
  ])
  const { pending } = await run(aiSdkAgent({ model: asking.model, tools }), 'Go')
  const { model, prompts } = scriptedModel(says('Done.'))
  await run(aiSdkAgent({ model, tools }), {
    messages: [user('Go'), {
      id: 'm2',
      role: 'ASSISTANT',
      content: [
        { type: 'thinking', thinking: 'Dangerous.' },
        { type: 'tool_use', id: 'c1', name: 'look', input: { name: 'a' } }, { type: 'tool_use', id: 'c2', name: 'delete', input: { name: 'a' } }
      ]
    }],
    resume: decide(pending, { kind: 'confirm', toolCallId: 'c2', approved: true }),
    knownCalls: known(pending)
  })
  t.match(prompts[0]?.[1], { content: [{ type: 'reasoning', text: 'Dangerous.', providerOptions: signed }, { type: 'tool-call', toolCallId: 'c1' }, { type: 'tool-call', toolCallId: 'c2' }] })
  t.equal(prompts[0]?.[1]?.content.length, 3)
})

t.test('a provider that asks before it runs a tool itself is answered, and edits make it ask again', async (t) => {
  const mcp = { type: 'tool-call', toolCallId: 'p1', toolName: 'mcp.pay', input: '{"sum":1}', providerExecuted: true, dynamic: true } as const
  const asking = scriptedModel([mcp, { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'p1' }, finish()])
  const { events, pending } = await run(aiSdkAgent({ model: asking.model }), 'Pay')
  t.strictSame(lines(events).slice(-2), [
    'REQUIRE_USER_CONFIRM 1 p1 mcp.pay {"sum":1} asking {"providerExecuted":true,"approvalId":"a1"}', 'AGENT_END PERMISSION_ASKING'
  ])

  const answer = async (decision: object) => {
    const { model, prompts } = scriptedModel(says('Done.'))
    const { events } = await run(aiSdkAgent({ model }), {
      messages: [user('Pay')], resume: decide(pending, { kind: 'confirm', toolCallId: 'p1', ...decision }), knownCalls: known(pending)
    })
    t.match(prompts[0]?.[1], { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'p1', providerExecuted: true }] })
    return { told: lines(events).filter((line) => line.startsWith('TOOL_RESULT')), answer: prompts[0]?.[2] }
  }
  t.match(await answer({ approved: true }), { told: [], answer: { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a1', approved: true }] } })
  t.match(await answer({ approved: false, reason: 'too dear' }), {
    told: ['TOOL_RESULT_START 1/p1', 'TOOL_RESULT_TEXT_DELTA 1/p1 "too dear"', 'TOOL_RESULT_END 1/p1 denied'],
    answer: { content: [{ approvalId: 'a1', approved: false, reason: 'too dear' }] }
  })
  t.match(await answer({ approved: false }), { answer: { content: [{ approved: false, reason: 'Permission denied by user' }] } })
  t.match(await answer({ approved: true, editedArgs: { sum: 2 } }), { answer: { content: [{ approved: false, reason: /call it again with them: \{"sum":2\}/ }] } })
})

t.test('what an agent used as a tool asks for is answered through its parents', async (t) => {
  const { tools, done } = fileTools()
  const grandchild = scriptedModel(calls(call('g1', 'delete', { name: 'a' }), call('g2', 'delete', { name: 'b' })), says('Both decided.'))
  const child = scriptedModel(calls(call('k1', 'keeper', { prompt: 'clean' })), says('Child done.'))
  const root = scriptedModel(calls(call('r1', 'boss', { prompt: 'clean up' })), says('All done.'))
  const keeper = aiSdkAgent({ model: grandchild.model, name: 'keeper', tools })
  const boss = aiSdkAgent({ model: child.model, name: 'boss', tools: [asTool(keeper)] })
  const agent = aiSdkAgent({ model: root.model, tools: [asTool(boss)] })
  const paused = await run(agent, 'Go')
  t.strictSame(paused.pending.map((item) => item.kind === 'confirm' && item.toolCall.id), ['g1', 'g2'])
  const { events } = await run(agent, {
    messages: [user('Go'), ...paused.message === undefined ? [] : [paused.message]],
    resume: decide(paused.pending, { kind: 'confirm', toolCallId: 'g1', approved: true }, { kind: 'confirm', toolCallId: 'g2', approved: false }),
    knownCalls: new Set([...known(paused.pending), 'r1'])
  })
  t.strictSame(done, ['delete a'])
  t.match(lines(events).filter((line) => line.startsWith('TOOL_RESULT_TEXT') || line.startsWith('TEXT_BLOCK_DELTA')),
    ['TOOL_RESULT_TEXT_DELTA 1/r1 "Child done."', /^TEXT_BLOCK_DELTA \d+\/t0 "All done."$/])
  t.match(root.prompts[1]?.at(-1), { role: 'tool', content: [{ toolCallId: 'r1', output: { type: 'text', value: 'Child done.' } }] })
})
