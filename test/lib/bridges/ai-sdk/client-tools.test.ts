import t from 'tap'
import { defineTool, type Msg, ToolSuspended } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { decide, known, lines, run, user } from './run.ts'
import { call, calls, finish, says, scriptedModel } from './scripted-model.ts'

const definitions = [{ name: 'pick', description: 'Picks a colour.', parameters: { type: 'object', properties: { question: { type: 'string' } } } }]
const tools = { mode: 'merge' as const, definitions }

t.test('a call of the page\'s tool ends the run and waits for its result, which comes as a message', async (t) => {
  const { model, prompts } = scriptedModel(calls(call('c1', 'pick', { question: 'Which?' })), says('teal it is'))
  const agent = aiSdkAgent({ model })
  const { events, pending, message } = await run(agent, { messages: [user('Paint')], tools })
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1', 'TOOL_CALL_START 1/c1 client', 'TOOL_CALL_DELTA 1/c1 "{\\"question\\":\\"Which?\\"}"', 'TOOL_CALL_END 1/c1', 'MODEL_CALL_END 1 tool-calls',
    'REQUIRE_EXTERNAL_EXECUTION 2 c1 pick {"question":"Which?"} pending', 'AGENT_END TOOL_SUSPENDED'
  ])
  t.match(model.doStreamCalls[0]?.tools, [{ name: 'pick', description: 'Picks a colour.', inputSchema: definitions[0]?.parameters }])
  t.strictSame(pending.map(({ kind }) => kind), ['external'])
  if (message === undefined) throw new Error('no message')
  const answer: Msg = { id: 'm3', role: 'TOOL', content: [{ type: 'tool_result', id: 'c1', output: [{ type: 'text', text: 'teal' }], state: 'success' }] }
  await run(agent, { messages: [user('Paint'), message, answer], tools })
  t.match(prompts[1]?.slice(1), [{ role: 'assistant', content: [{ toolCallId: 'c1' }] }, { role: 'tool', content: [{ toolCallId: 'c1', output: { type: 'text', value: 'teal' } }] }])
})

t.test('the result may come as a decision, with media, or as a failure', async (t) => {
  for (const [decision, told, shown] of [
    [{ output: 'teal' }, ['TOOL_RESULT_TEXT_DELTA 1/c1 "teal"', 'TOOL_RESULT_END 1/c1 success'], { type: 'text', value: 'teal' }],
    [{ output: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }] }, ['TOOL_RESULT_DATA_DELTA 1/c1', 'TOOL_RESULT_END 1/c1 success'], { type: 'content', value: [{ type: 'image-url', url: 'https://x.test/a.png' }] }],
    [{ output: 'closed', state: 'interrupted' }, ['TOOL_RESULT_TEXT_DELTA 1/c1 "closed"', 'TOOL_RESULT_END 1/c1 interrupted'], { type: 'error-text', value: 'closed' }]
  ] as const) {
    const { model, prompts } = scriptedModel(calls(call('c1', 'pick', {})), says('ok'))
    const agent = aiSdkAgent({ model })
    const { pending } = await run(agent, { messages: [user('Paint')], tools })
    const { events } = await run(agent, {
      messages: [user('Paint')], tools, resume: decide(pending, { kind: 'result', toolCallId: 'c1', ...decision }), knownCalls: known(pending)
    })
    t.strictSame(lines(events).slice(0, 4), ['TOOL_RESULT_START 1/c1', ...told, 'MODEL_CALL_START 2'])
    t.match(prompts[1]?.at(-1), { role: 'tool', content: [{ toolCallId: 'c1', output: shown }] })
  }
})

t.test('an approval and a call of the page in one answer: what is still under way is waited for again', async (t) => {
  let ran = 0
  const pay = defineTool({ name: 'pay', needsApproval: true, execute: () => { ran++; return 'paid' } })
  const { model, prompts } = scriptedModel(calls(call('c1', 'pay', {}), call('c2', 'pick', {})), says('ok'))
  const agent = aiSdkAgent({ model, tools: [pay] })
  const paused = await run(agent, { messages: [user('Go')], tools })
  t.strictSame(paused.pending.map(({ kind }) => kind), ['confirm', 'external'])
  const { message } = paused
  if (message === undefined) throw new Error('no message')
  const [confirm] = paused.pending
  const resumed = await run(agent, {
    messages: [user('Go'), message],
    tools,
    resume: decide(confirm === undefined ? [] : [confirm], { kind: 'confirm', toolCallId: 'c1', approved: true }),
    knownCalls: known(paused.pending)
  })
  t.strictSame(resumed.pending.map((item) => item.kind === 'external' && item.toolCall.id), ['c2'])
  t.strictSame([ran, prompts.length], [1, 1])
  const result = (id: string, text: string): Msg => ({ id: `m-${id}`, role: 'TOOL', content: [{ type: 'tool_result', id, output: [{ type: 'text', text }], state: 'success' }] })
  await run(agent, { messages: [user('Go'), message, result('c1', 'paid'), result('c2', 'teal')], tools })
  t.match(prompts[1]?.at(-1), { content: [{ toolCallId: 'c1', output: { value: 'paid' } }, { toolCallId: 'c2', output: { value: 'teal' } }] })
  t.equal(ran, 1)
})

t.test('a page may take the name of a tool of the agent only where the mode lets it', async (t) => {
  let ran = 0
  const own = defineTool({ name: 'pick', description: 'Own.', execute: () => { ran++ } })
  for (const [mode, expected] of [['MERGE_EXTERNAL_PRIORITY', 0], ['MERGE_AGENT_PRIORITY', 1], ['AGENT_ONLY', 1], ['EXTERNAL_ONLY', 0]] as const) {
    ran = 0
    const { model } = scriptedModel(calls(call('c1', 'pick', {})), says('ok'))
    const { pending } = await run(aiSdkAgent({ model, tools: [own] }), { messages: [user('Go')], tools: { mode, definitions } })
    t.strictSame([ran, pending.length], [expected, 1 - expected], mode)
  }
})

t.test('a tool of the agent that suspends itself waits like the page\'s', async (t) => {
  const wait = defineTool({ name: 'wait', execute: () => { throw new ToolSuspended('Ask Bob.') } })
  const { model, prompts } = scriptedModel(calls(call('c1', 'wait', {})), says('ok'))
  const agent = aiSdkAgent({ model, tools: [wait] })
  const { events, pending, message } = await run(agent, 'Go')
  t.strictSame(lines(events).slice(-5), [
    'TOOL_RESULT_START 2/c1', 'TOOL_RESULT_TEXT_DELTA 2/c1 "Ask Bob."', 'TOOL_RESULT_END 2/c1 running {"agentscope_suspended":true}',
    'REQUIRE_EXTERNAL_EXECUTION 2 c1 wait {} pending', 'AGENT_END TOOL_SUSPENDED'
  ])
  if (message === undefined) throw new Error('no message')
  await run(agent, { messages: [user('Go'), message], resume: decide(pending, { kind: 'result', toolCallId: 'c1', output: 'Bob says yes' }), knownCalls: known(pending) })
  t.match(prompts[1]?.at(-1), { content: [{ output: { type: 'text', value: 'Bob says yes' } }] })
})

t.test('nobody waits for a call that the model has begun and not made', async (t) => {
  const begun = [{ type: 'tool-input-start', id: 'c2', toolName: 'pick' }, { type: 'tool-input-delta', id: 'c2', delta: '{' }, { type: 'tool-input-end', id: 'c2' }] as const
  const { model } = scriptedModel([...calls(call('c1', 'pick', {})).slice(0, -1), ...begun, finish('tool-calls')], says('done'))
  const agent = aiSdkAgent({ model })
  const { events, pending, message } = await run(agent, { messages: [user('Paint')], tools })
  t.strictSame(pending.map((item) => item.kind === 'external' && item.toolCall.id), ['c1'])
  t.ok(lines(events).includes('TOOL_RESULT_END 1/c2 error'))
  if (message === undefined) throw new Error('no message')
  const next = await run(agent, {
    messages: [user('Paint'), message], tools, resume: decide(pending, { kind: 'result', toolCallId: 'c1', output: 'teal' }), knownCalls: known(pending)
  })
  t.strictSame(next.pending, [])
  t.match(next.message?.content.at(-1), { type: 'text', text: 'done' })
})
