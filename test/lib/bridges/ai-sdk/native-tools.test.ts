// Tools of the SDK's own kind.
import { dynamicTool, jsonSchema, tool, type ToolSet } from 'ai'
import t from 'tap'
import { type RuntimeContext } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { decide, known, lines, run, user } from './run.ts'
import { call, calls, says, scriptedModel } from './scripted-model.ts'

/** A schema with a check of its own, as zod's: it fills in what is missing and turns a text into a date. */
const when = jsonSchema<{ day: Date, zone: string }>(
  { type: 'object', properties: { day: { type: 'string' }, zone: { type: 'string' } }, required: ['day'] },
  {
    validate: (value) => {
      const { day, zone = 'UTC' } = value as { day: string, zone?: string }
      const date = new Date(day)
      return Number.isNaN(date.getTime()) ? { success: false, error: new Error(`"${day}" is no day`) } : { success: true, value: { day: date, zone } }
    }
  }
)

t.test('a tool of the SDK gets what its schema makes of the input, the conversation, the signal and the run\'s context', async (t) => {
  const seen: unknown[] = []
  const tools: ToolSet = {
    book: tool({
      description: 'Books a day.',
      inputSchema: when,
      execute: ({ day, zone }, { toolCallId, messages, abortSignal, experimental_context: context }) => {
        seen.push(day.toISOString(), zone, toolCallId, messages.map(({ role }) => role), abortSignal instanceof AbortSignal, (context as RuntimeContext).sessionId)
        return { booked: day }
      }
    })
  }
  const { model, prompts } = scriptedModel(calls(call('c1', 'book', { day: '2026-12-01' }), call('c2', 'book', { day: 'soon' }), call('c3', 'book', {})), says('ok'))
  const { events } = await run(aiSdkAgent({ model, tools }), 'Book')
  t.strictSame(seen, ['2026-12-01T00:00:00.000Z', 'UTC', 'c1', ['user'], true, 's1'])
  t.match(model.doStreamCalls[0]?.tools, [{ type: 'function', name: 'book', description: 'Books a day.', inputSchema: { required: ['day'] } }])
  t.match(prompts[1]?.at(-1), {
    content: [
      { output: { type: 'text', value: '{"booked":"2026-12-01T00:00:00.000Z"}' } },
      { output: { type: 'error-text', value: 'Error: "soon" is no day' } },
      { output: { type: 'error-text', value: /Invalid arguments/ } }
    ]
  })
  t.ok(lines(events).includes('TOOL_RESULT_TEXT_DELTA 2/c1 "{\\"booked\\":\\"2026-12-01T00:00:00.000Z\\"}"'))
})

t.test('its approval is asked for here, by the value or by its own function, never by the SDK', async (t) => {
  let ran = 0
  const asked: unknown[] = []
  const tools: ToolSet = {
    always: tool({ inputSchema: jsonSchema({ type: 'object' }), needsApproval: true, execute: () => { ran++; return 'did' } }),
    sometimes: tool({
      inputSchema: when,
      needsApproval: ({ day }, { toolCallId, messages, experimental_context: context }) => {
        asked.push([toolCallId, messages.length, (context as RuntimeContext).sessionId])
        return day.getUTCDay() === 0
      },
      execute: () => { ran++; return 'did' }
    })
  }
  const { model, prompts } = scriptedModel(calls(
    call('c1', 'always', {}), call('c2', 'sometimes', { day: '2026-11-29' }), call('c3', 'sometimes', { day: '2026-12-01' }), call('c4', 'sometimes', { day: 'soon' })
  ), says('ok'))
  const agent = aiSdkAgent({ model, tools })
  const { pending, events, message } = await run(agent, 'Go')
  t.strictSame(pending.map((item) => item.kind === 'confirm' && item.toolCall.id), ['c1', 'c2'])
  t.strictSame(asked, [['c2', 1, 's1'], ['c3', 1, 's1']])
  t.ok(lines(events).includes('TOOL_RESULT_END 2/c4 error'))
  t.equal(ran, 1)
  if (message === undefined) throw new Error('no message')
  await run(agent, {
    messages: [user('Go'), message],
    resume: decide(pending, { kind: 'confirm', toolCallId: 'c1', approved: true }, { kind: 'confirm', toolCallId: 'c2', approved: true }),
    knownCalls: known(pending)
  })
  t.equal(ran, 3)
  t.match(prompts[1]?.at(-1)?.content.length, 4)
})

t.test('previews of a tool that yields are progress, its last value is the result', async (t) => {
  const tools: ToolSet = {
    count: tool({ inputSchema: jsonSchema({ type: 'object' }), async * execute () { yield { at: 1 }; yield { at: 2 } } }),
    none: dynamicTool({ inputSchema: jsonSchema({ type: 'object' }), async * execute () { yield undefined } })
  }
  const { model, prompts } = scriptedModel(calls(call('c1', 'count', {}), call('c2', 'none', {})), says('ok'))
  const { events } = await run(aiSdkAgent({ model, tools }), 'Count')
  t.strictSame(lines(events).filter((line) => line.startsWith('CUSTOM')), [
    'CUSTOM {"toolCallId":"c1","output":{"at":1}}', 'CUSTOM {"toolCallId":"c2","output":null}', 'CUSTOM {"toolCallId":"c1","output":{"at":2}}'
  ])
  t.match(prompts[1]?.at(-1), { content: [{ output: { value: '{"at":2}' } }, { output: { type: 'text', value: '' } }] })
})

t.test('what a tool shows its model may differ from its result', async (t) => {
  const tools: ToolSet = {
    photo: tool({
      inputSchema: jsonSchema({ type: 'object' }),
      execute: () => ({ file: 'a.png' }),
      toModelOutput: ({ output }) => ({ type: 'content', value: [{ type: 'text', text: `see ${output.file}` }, { type: 'image-data', data: 'AAAA', mediaType: 'image/png' }] })
    })
  }
  const { model, prompts } = scriptedModel(calls(call('c1', 'photo', {})), says('ok'))
  const { events } = await run(aiSdkAgent({ model, tools }), 'Photo')
  t.ok(lines(events).includes('TOOL_RESULT_TEXT_DELTA 2/c1 "{\\"file\\":\\"a.png\\"}"'))
  t.match(prompts[1]?.at(-1), { content: [{ output: { type: 'content', value: [{ text: 'see a.png' }, { type: 'image-data' }] } }] })
})

t.test('one without execute is executed elsewhere', async (t) => {
  const tools: ToolSet = { ask: { description: 'Asks.', inputSchema: jsonSchema({ type: 'object' }) } }
  const { model } = scriptedModel(calls(call('c1', 'ask', {})))
  const { pending } = await run(aiSdkAgent({ model, tools }), 'Go')
  t.strictSame(pending.map(({ kind }) => kind), ['external'])
})

t.test('a tool that the provider runs is not offered to a run whose deny rules name it', async (t) => {
  const tools: ToolSet = {
    search: { type: 'provider', id: 'mock.search', args: {}, inputSchema: jsonSchema({ type: 'object' }) } as never,
    // The provider's idea, but run here: its calls can be stopped one by one.
    shell: { type: 'provider', id: 'mock.shell', args: {}, inputSchema: jsonSchema({ type: 'object' }), execute: () => 'ran' } as never,
    look: tool({ inputSchema: jsonSchema({ type: 'object' }), execute: () => 'seen' })
  }
  const offered = async (denyRules: Parameters<typeof run>[1] extends infer I ? Extract<I, { denyRules?: unknown }>['denyRules'] : never) => {
    const { model } = scriptedModel(says('ok'))
    await run(aiSdkAgent({ model, tools }), { messages: [user('Go')], ...denyRules !== undefined && { denyRules } })
    return model.doStreamCalls[0]?.tools?.map(({ name }) => name)
  }
  t.strictSame(await offered(undefined), ['search', 'shell', 'look'])
  // What is in the query nobody here gets to see: any rule for the tool forbids it altogether.
  t.strictSame(await offered([{ tool_name: 'search', rule_content: '*secret*', behavior: 'deny' }, { tool_name: 'shell', rule_content: 'rm:*', behavior: 'deny' }]), ['shell', 'look'])
  t.strictSame(await offered([{ tool_name: 'search', behavior: 'allow' }, { tool_name: 'look', behavior: 'deny' }]), ['search', 'shell', 'look'])
})

t.test('tools of the page are offered beside them, and may take their names', async (t) => {
  const tools: ToolSet = {
    look: tool({ description: 'Own.', inputSchema: jsonSchema({ type: 'object' }), strict: true, execute: () => 'own' }),
    pick: tool({ description: 'Own.', inputSchema: jsonSchema({ type: 'object' }), execute: () => 'own' })
  }
  const { model } = scriptedModel(calls(call('c1', 'look', {}), call('c2', 'pick', {})))
  const definitions = [{ name: 'pick', description: 'Of the page.', parameters: { type: 'object' }, strict: true }, { name: 'paint' }]
  const { pending } = await run(aiSdkAgent({ model, tools }), { messages: [user('Go')], tools: { mode: 'merge', definitions } })
  t.match(model.doStreamCalls[0]?.tools, [
    { name: 'look', description: 'Own.', strict: true }, { name: 'pick', description: 'Of the page.', strict: true }, { name: 'paint', inputSchema: { type: 'object', properties: {} } }
  ])
  t.strictSame(pending.map((item) => [item.kind, item.kind === 'external' && item.toolCall.id]), [['external', 'c2']])
})
