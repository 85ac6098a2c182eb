import t from 'tap'
import { Type } from '@sinclair/typebox'
import { defineTool, type Msg } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { lines, run, user } from './run.ts'
import { call, calls, finish, says, scriptedModel, text, usage } from './scripted-model.ts'

const add = defineTool({
  name: 'add', description: 'Adds.', parameters: Type.Object({ a: Type.Number(), b: Type.Number() }), execute: ({ a, b }) => String(a + b)
})

t.test('a text is a block of a model call, with its usage', async (t) => {
  const { model, prompts } = scriptedModel([
    { type: 'response-metadata', id: 'x', modelId: 'scripted-2026', timestamp: new Date(0) },
    ...text('t0', 'Hel', '', 'lo'),
    finish('stop', usage(10, 5, { cacheRead: 4, cacheWrite: 3, reasoning: 2 }))
  ])
  const { events, message } = await run(aiSdkAgent({ model, system: 'Be brief.' }), 'Hi')
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1',
    'TEXT_BLOCK_START 1/t0', 'TEXT_BLOCK_DELTA 1/t0 "Hel"', 'TEXT_BLOCK_DELTA 1/t0 "lo"', 'TEXT_BLOCK_END 1/t0',
    'MODEL_CALL_END 1 stop {"inputTokens":10,"outputTokens":5,"cachedTokens":4,"cacheCreationTokens":3,"reasoningTokens":2,"totalTokens":15}',
    'AGENT_END MODEL_STOP'
  ])
  t.strictSame(message?.content, [{ type: 'text', text: 'Hello' }])
  t.strictSame(prompts, [[{ role: 'system', content: 'Be brief.' }, { role: 'user', content: [{ type: 'text', text: 'Hi', providerOptions: undefined }], providerOptions: undefined }]])
  t.match(events.filter((event) => 'model' in event).map((event) => 'model' in event ? event.model : ''), ['scripted', 'scripted-2026'])
})

t.test('tools run here, side by side, and the model sees their results in its own order', async (t) => {
  const { model, prompts } = scriptedModel(
    [
      { type: 'tool-input-start', id: 'c1', toolName: 'add' },
      { type: 'tool-input-delta', id: 'c1', delta: '{"a":1,' }, { type: 'tool-input-delta', id: 'c1', delta: '"b":2}' },
      { type: 'tool-input-end', id: 'c1' },
      { ...call('c1', 'add', '{"a":1,"b":2}'), providerMetadata: { google: { thoughtSignature: 'sig' } } } as never,
      call('c2', 'add', { a: 3, b: 4 }),
      finish('tool-calls', usage(1, 2))
    ],
    says('3 and 7')
  )
  const { events, message } = await run(aiSdkAgent({ model, tools: [add] }), 'Add')
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1',
    'TOOL_CALL_START 1/c1 agent', 'TOOL_CALL_DELTA 1/c1 "{\\"a\\":1,"', 'TOOL_CALL_DELTA 1/c1 "\\"b\\":2}"',
    'TOOL_CALL_END 1/c1 {"providerMetadata":{"google":{"thoughtSignature":"sig"}}}',
    'TOOL_CALL_START 1/c2 agent', 'TOOL_CALL_DELTA 1/c2 "{\\"a\\":3,\\"b\\":4}"', 'TOOL_CALL_END 1/c2',
    'MODEL_CALL_END 1 tool-calls {"inputTokens":1,"outputTokens":2,"totalTokens":3}',
    'TOOL_RESULT_START 2/c1', 'TOOL_RESULT_START 2/c2', 'TOOL_RESULT_TEXT_DELTA 2/c1 "3"', 'TOOL_RESULT_TEXT_DELTA 2/c2 "7"',
    'TOOL_RESULT_END 2/c1 success', 'TOOL_RESULT_END 2/c2 success',
    'MODEL_CALL_START 3', 'TEXT_BLOCK_START 3/t0', 'TEXT_BLOCK_DELTA 3/t0 "3 and 7"', 'TEXT_BLOCK_END 3/t0', 'MODEL_CALL_END 3 stop',
    'AGENT_END MODEL_STOP'
  ])
  t.match(message?.usage, { inputTokens: 1, outputTokens: 2 })
  t.match(prompts[1]?.slice(1), [
    {
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'c1', toolName: 'add', input: { a: 1, b: 2 }, providerOptions: { google: { thoughtSignature: 'sig' } } },
        { type: 'tool-call', toolCallId: 'c2', toolName: 'add', input: { a: 3, b: 4 } }
      ]
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'c1', toolName: 'add', output: { type: 'text', value: '3' } },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'add', output: { type: 'text', value: '7' } }
      ]
    }
  ])
})

t.test('reasoning keeps what its provider signed, for the next step and for the conversation', async (t) => {
  const signed = { anthropic: { signature: 'sig' } }
  const hidden = { anthropic: { redactedData: 'xyz' } }
  const { model, prompts } = scriptedModel(
    [
      { type: 'reasoning-start', id: 'r0' },
      { type: 'reasoning-delta', id: 'r0', delta: 'Hm' }, { type: 'reasoning-delta', id: 'r0', delta: '.' },
      { type: 'reasoning-delta', id: 'r0', delta: '', providerMetadata: signed },
      { type: 'reasoning-end', id: 'r0' },
      { type: 'reasoning-start', id: 'r1', providerMetadata: hidden }, { type: 'reasoning-end', id: 'r1' },
      ...calls(call('c1', 'add', { a: 1, b: 2 }))
    ],
    says('3')
  )
  const { events, message } = await run(aiSdkAgent({ model, tools: [add] }), 'Add')
  t.strictSame(lines(events).slice(0, 8), [
    'MODEL_CALL_START 1',
    'THINKING_BLOCK_START 1/r0', 'THINKING_BLOCK_DELTA 1/r0 "Hm"', 'THINKING_BLOCK_DELTA 1/r0 "."', 'THINKING_BLOCK_END 1/r0 {"providerMetadata":{"anthropic":{"signature":"sig"}}}',
    'THINKING_BLOCK_START 1/r1', 'THINKING_BLOCK_END 1/r1 {"providerMetadata":{"anthropic":{"redactedData":"xyz"}}}',
    'TOOL_CALL_START 1/c1 agent'
  ])
  const kept = [{ type: 'reasoning', text: 'Hm.', providerOptions: signed }, { type: 'reasoning', text: '', providerOptions: hidden }]
  t.match(prompts[1]?.[1], { role: 'assistant', content: kept })

  const { model: later, prompts: laterPrompts } = scriptedModel(says('Again 3'))
  if (message === undefined) throw new Error('no message')
  await run(aiSdkAgent({ model: later }), { messages: [user('Add'), message, user('Again')] })
  t.match(laterPrompts[0], [
    { role: 'user' },
    { role: 'assistant', content: [...kept, { type: 'tool-call', toolCallId: 'c1' }] },
    { role: 'tool', content: [{ toolCallId: 'c1', output: { type: 'text', value: '3' } }] },
    { role: 'assistant', content: [{ type: 'text', text: '3' }] },
    { role: 'user' }
  ])
})

t.test('a call of a tool that is unknown, or with arguments that are no JSON, is answered and not run', async (t) => {
  let ran = 0
  const touch = defineTool({ name: 'touch', execute: () => { ran++ } })
  const { model, prompts } = scriptedModel(
    calls(call('c1', 'nope', {}), call('c2', 'touch', '{"a":'), { type: 'tool-input-start', id: 'c3', toolName: 'touch' }, call('c3', 'touch', '')),
    says('Sorry')
  )
  const { events } = await run(aiSdkAgent({ model, tools: [touch] }), 'Go')
  const results = events.flatMap((event) => event.type === 'TOOL_RESULT_END' ? [[event.toolCallId, event.state]] : [])
  t.strictSame(results, [['c1', 'error'], ['c2', 'error'], ['c3', 'success']])
  t.equal(ran, 1)
  t.match(lines(events).filter((line) => line.startsWith('TOOL_CALL_DELTA')), ['TOOL_CALL_DELTA 1/c1 "{}"', 'TOOL_CALL_DELTA 1/c2 "{\\"a\\":"', 'TOOL_CALL_DELTA 1/c3 "{}"'])
  t.match(prompts[1]?.at(-1), {
    role: 'tool',
    content: [
      { toolCallId: 'c3', output: { type: 'text', value: '' } },
      { toolCallId: 'c1', output: { type: 'error-text', value: /unavailable tool 'nope'/ } },
      { toolCallId: 'c2', output: { type: 'error-text', value: /JSON parsing failed/ } }
    ]
  })
})

t.test('a call whose arguments do not fit is answered with what is wrong', async (t) => {
  const { model, prompts } = scriptedModel(calls(call('c1', 'add', { a: 1 })), says('Sorry'))
  const { events } = await run(aiSdkAgent({ model, tools: [add] }), 'Go')
  t.ok(lines(events).includes('TOOL_RESULT_END 2/c1 error'))
  t.match(prompts[1]?.at(-1), { content: [{ output: { type: 'error-text', value: /Invalid arguments at/ } }] })
})

t.test('a tool that throws is a result for the model; what it says reaches clients, too', async (t) => {
  const fail = defineTool({ name: 'fail', execute: () => { throw new Error('disk full') } })
  const { model, prompts } = scriptedModel(calls(call('c1', 'fail', {})), says('Sorry'))
  const { events } = await run(aiSdkAgent({ model, tools: [fail] }), 'Go')
  t.ok(lines(events).includes('TOOL_RESULT_TEXT_DELTA 2/c1 "Error: disk full"'))
  t.match(prompts[1]?.at(-1), { content: [{ output: { type: 'error-text', value: 'Error: disk full' } }] })
})

t.test('what a tool says in pieces is one text for the model; pictures are pictures', async (t) => {
  const speak = defineTool({ name: 'speak', async * execute () { yield 'one '; yield 'two'; return ' three' } })
  const paint = defineTool({
    name: 'paint',
    execute: () => [{ type: 'text', text: 'Here:' }, { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }]
  })
  const { model, prompts } = scriptedModel(calls(call('c1', 'speak', {}), call('c2', 'paint', {})), says('ok'))
  await run(aiSdkAgent({ model, tools: [speak, paint] }), 'Go')
  t.match(prompts[1]?.at(-1), {
    content: [
      { output: { type: 'text', value: 'one two three' } },
      { output: { type: 'content', value: [{ type: 'text', text: 'Here:' }, { type: 'image-data', data: 'AAAA', mediaType: 'image/png' }] } }
    ]
  })
})

t.test('tools that the provider runs are told with their results and failures, previews left out', async (t) => {
  const { model, prompts } = scriptedModel(
    [
      { type: 'tool-call', toolCallId: 'p1', toolName: 'search', input: '{"q":"x"}', providerExecuted: true, dynamic: true },
      { type: 'tool-result', toolCallId: 'p1', toolName: 'search', result: { found: 1 }, preliminary: true, dynamic: true },
      { type: 'tool-result', toolCallId: 'p1', toolName: 'search', result: { found: 2 }, dynamic: true },
      { type: 'tool-call', toolCallId: 'p2', toolName: 'search', input: '{}', providerExecuted: true, dynamic: true },
      { type: 'tool-result', toolCallId: 'p2', toolName: 'search', result: { error: 'down' }, isError: true, dynamic: true },
      { type: 'tool-call', toolCallId: 'p3', toolName: 'search', input: '{}', providerExecuted: true, dynamic: true },
      { type: 'tool-result', toolCallId: 'p3', toolName: 'search', result: 'plain', dynamic: true },
      ...text('t0', 'Two.'),
      finish()
    ],
    says('Still two.')
  )
  const { events, message } = await run(aiSdkAgent({ model }), 'Search')
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1',
    'TOOL_CALL_START 1/p1 agent', 'TOOL_CALL_DELTA 1/p1 "{\\"q\\":\\"x\\"}"', 'TOOL_CALL_END 1/p1 {"providerExecuted":true}',
    'TOOL_RESULT_START 1/p1', 'TOOL_RESULT_TEXT_DELTA 1/p1 "{\\"found\\":2}"', 'TOOL_RESULT_END 1/p1 success',
    'TOOL_CALL_START 1/p2 agent', 'TOOL_CALL_DELTA 1/p2 "{}"', 'TOOL_CALL_END 1/p2 {"providerExecuted":true}',
    'TOOL_RESULT_START 1/p2', 'TOOL_RESULT_TEXT_DELTA 1/p2 "{\\"error\\":\\"down\\"}"', 'TOOL_RESULT_END 1/p2 error',
    'TOOL_CALL_START 1/p3 agent', 'TOOL_CALL_DELTA 1/p3 "{}"', 'TOOL_CALL_END 1/p3 {"providerExecuted":true}',
    'TOOL_RESULT_START 1/p3', 'TOOL_RESULT_TEXT_DELTA 1/p3 "plain"', 'TOOL_RESULT_END 1/p3 success',
    'TEXT_BLOCK_START 1/t0', 'TEXT_BLOCK_DELTA 1/t0 "Two."', 'TEXT_BLOCK_END 1/t0',
    'MODEL_CALL_END 1 stop', 'AGENT_END MODEL_STOP'
  ])
  if (message === undefined) throw new Error('no message')
  await run(aiSdkAgent({ model }), { messages: [user('Search'), message, user('Sure?')] })
  t.match(prompts[1]?.[1], { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'p1', providerExecuted: true }, { type: 'tool-result', toolCallId: 'p1' }] })
})

t.test('a result that the provider gives in a later answer finds its call', async (t) => {
  const { model } = scriptedModel(
    calls({ type: 'tool-call', toolCallId: 'p1', toolName: 'code', input: '{}', providerExecuted: true, dynamic: true }, call('c1', 'add', { a: 1, b: 1 })),
    [{ type: 'tool-result', toolCallId: 'p1', toolName: 'code', result: 2, dynamic: true }, ...says('2')]
  )
  const { message } = await run(aiSdkAgent({ model, tools: [add] }), 'Go')
  t.match(message?.content.map((block) => [block.type, 'id' in block ? block.id : undefined, 'state' in block ? block.state : undefined]),
    [['tool_use', 'p1', 'finished'], ['tool_use', 'c1', 'finished'], ['tool_result', 'c1', 'success'], ['tool_result', 'p1', 'success'], ['text', undefined, undefined]])
})

t.test('the agent\'s instructions and those of the conversation are one system message', async (t) => {
  const { model, prompts } = scriptedModel(says('ok'))
  const system = (text: string): Msg => ({ id: text, role: 'SYSTEM', content: [{ type: 'text', text }] })
  await run(aiSdkAgent({ model, system: 'Be brief.' }), { messages: [system('The user is Bob.'), user('Hi'), system('It is late.')] })
  t.match(prompts[0], [{ role: 'system', content: 'Be brief.\n\nThe user is Bob.\n\nIt is late.' }, { role: 'user' }])
  t.equal(prompts[0]?.length, 2)
})

t.test('a provider that counts only one side of the tokens is believed', async (t) => {
  const { model } = scriptedModel([finish('stop', usage(3))], [finish('stop', usage(undefined, 4))])
  for (const expected of [{ inputTokens: 3, outputTokens: 0 }, { inputTokens: 0, outputTokens: 4 }]) {
    const { events } = await run(aiSdkAgent({ model }), 'Hi')
    t.match(events.find((event) => event.type === 'MODEL_CALL_END'), { usage: expected })
  }
})

t.test('files are data blocks, sources citations', async (t) => {
  const { model } = scriptedModel([
    { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com/', title: 'Example' },
    { type: 'file', mediaType: 'image/png', data: 'AAAA' },
    { type: 'raw', rawValue: {} },
    finish()
  ])
  const { events, message } = await run(aiSdkAgent({ model }), 'Draw')
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1',
    'CUSTOM {"sourceType":"url","id":"s1","url":"https://example.com/","title":"Example"}',
    'DATA_BLOCK_START 1/file-1', 'DATA_BLOCK_DELTA 1/file-1 "AAAA"', 'DATA_BLOCK_END 1/file-1',
    'MODEL_CALL_END 1 stop', 'AGENT_END MODEL_STOP'
  ])
  t.strictSame(message?.content, [{ type: 'data', id: 'file-1', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }])
})

t.test('calls of an answer that was cut off are not made, and the run ends', async (t) => {
  for (const reason of ['length', 'content-filter', 'other'] as const) {
    let ran = 0
    const touch = defineTool({ name: 'touch', execute: () => { ran++ } })
    const { model, prompts } = scriptedModel([call('c1', 'touch', {}), finish(reason)])
    const { events } = await run(aiSdkAgent({ model, tools: [touch] }), 'Go')
    t.strictSame(lines(events), [
      'MODEL_CALL_START 1', 'TOOL_CALL_START 1/c1 agent', 'TOOL_CALL_DELTA 1/c1 "{}"', 'TOOL_CALL_END 1/c1', `MODEL_CALL_END 1 ${reason}`,
      'TOOL_RESULT_START 1/c1', `TOOL_RESULT_TEXT_DELTA 1/c1 "The call was not made: the model's answer ended early (${reason})."`, 'TOOL_RESULT_END 1/c1 interrupted',
      'AGENT_END MODEL_STOP'
    ])
    t.strictSame([ran, prompts.length], [0, 1])
  }
})

t.test('a run that takes too many steps ends', async (t) => {
  const { model, prompts } = scriptedModel(calls(call('c1', 'add', { a: 1, b: 1 })), calls(call('c2', 'add', { a: 2, b: 2 })))
  const { events } = await run(aiSdkAgent({ model, tools: [add], maxSteps: 2 }), 'Go')
  t.strictSame(lines(events).slice(-3), ['TOOL_RESULT_END 4/c2 success', 'EXCEED_MAX_ITERS 5', 'AGENT_END MAX_ITERATIONS'])
  t.match(events.find((event) => event.type === 'EXCEED_MAX_ITERS'), { maxIters: 2, currentIter: 2 })
  t.equal(prompts.length, 2)
})

t.test('a request sets what the model is asked for, below the limits of the agent', async (t) => {
  const { model } = scriptedModel(says('a'), says('b'), says('c'))
  const agent = aiSdkAgent({ model, tools: [add], settings: { maxOutputTokens: 100, temperature: 0, maxRetries: 0, providerOptions: { x: { y: 1 } } } })
  await run(agent, {
    messages: [user('Hi')],
    options: { temperature: 0.5, topP: 0.9, maxOutputTokens: 1000, stop: ['END'], seed: 7 },
    tools: { mode: 'merge', definitions: [], choice: { name: 'add' } }
  })
  await run(agent, { messages: [user('Hi')], options: { maxOutputTokens: 10 }, tools: { mode: 'merge', definitions: [], choice: 'none' } })
  await run(agent, { messages: [user('Hi')], tools: { mode: 'merge', definitions: [], choice: { name: 'nope' } } })
  t.match(model.doStreamCalls, [
    { temperature: 0.5, topP: 0.9, maxOutputTokens: 100, stopSequences: ['END'], seed: 7, providerOptions: { x: { y: 1 } }, toolChoice: { type: 'tool', toolName: 'add' } },
    { temperature: 0, maxOutputTokens: 10, toolChoice: { type: 'none' } },
    { maxOutputTokens: 100, toolChoice: { type: 'auto' } }
  ])
  t.match(model.doStreamCalls[0]?.tools, [{ type: 'function', name: 'add', description: 'Adds.', inputSchema: { type: 'object', properties: { a: { type: 'number' } } } }])
})

t.test('an agent says what it can do; what is no model of ai 6 is refused', async (t) => {
  const { model } = scriptedModel()
  t.match(aiSdkAgent({ model }), { name: 'assistant', description: undefined, capabilities: { resume: true, clientTools: true, denyRules: true, inputMedia: ['image/*'] } })
  t.match(aiSdkAgent({ model, name: 'a', description: 'b', inputMedia: ['application/pdf'] }), { name: 'a', description: 'b', capabilities: { inputMedia: ['application/pdf'] } })
  for (const wrong of ['openai/gpt-5', null, undefined, { specificationVersion: 'v2' }]) {
    t.throws(() => aiSdkAgent({ model: wrong as never }), { code: 'AGT_ERR_OPTION_INVALID' })
  }
  t.throws(() => aiSdkAgent({ model, maxSteps: 0 }), { code: 'AGT_ERR_OPTION_INVALID' })
  t.match((await run(aiSdkAgent({ model }))).error, { code: 'no_messages' })
})

t.test('call ids are unique in a conversation, whatever a server counts from', async (t) => {
  const ran: unknown[] = []
  const note = defineTool({ name: 'note', execute: ({ n }) => { ran.push(n); return String(n) } })
  const { model, prompts } = scriptedModel(
    calls(call('0', 'note', { n: 1 }), call('0', 'note', { n: 2 })),
    calls(
      { type: 'tool-input-start', id: '0', toolName: 'note' }, { type: 'tool-input-delta', id: '0', delta: '{"n":3}' }, { type: 'tool-input-end', id: '0' }, call('0', 'note', { n: 3 }),
      call('', 'note', { n: 4 }), call('', 'note', { n: 5 })
    ),
    says('ok'), calls(call('0', 'note', { n: 6 })), says('ok')
  )
  const agent = aiSdkAgent({ model, tools: [note] })
  const { events, message } = await run(agent, 'Go')
  if (message === undefined) throw new Error('no message')
  await run(agent, { messages: [user('Go'), message, user('More')] })
  t.strictSame(ran, [1, 2, 3, 4, 5, 6])
  const ids = events.flatMap((event) => event.type === 'TOOL_CALL_START' ? [event.toolCallId] : [])
  t.equal(ids[0], '0')
  t.equal(new Set(ids).size, 5)
  t.notOk(ids.includes(''))
  t.strictSame(events.flatMap((event) => event.type === 'TOOL_CALL_DELTA' ? [[event.toolCallId, event.delta]] : []), ids.map((id, index) => [id, `{"n":${index + 1}}`]))
  t.match(prompts.at(-1)?.flatMap((message) => message.role === 'tool' ? message.content : []).map((part) => 'output' in part && part.output), [1, 2, 3, 4, 5, 6].map((n) => ({ type: 'text', value: String(n) })))
})
