import t from 'tap'
import { Type } from '@sinclair/typebox'
import { defineTool } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { lines, run } from './run.ts'
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
  t.strictSame(prompts, [[{ role: 'system', content: 'Be brief.', providerOptions: undefined }, { role: 'user', content: [{ type: 'text', text: 'Hi', providerOptions: undefined }], providerOptions: undefined }]])
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
  t.strictSame(calls().length, 1)
})
