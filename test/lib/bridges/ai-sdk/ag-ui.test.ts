// The bridge behind AG-UI: what a page gets, and what a server that was started anew does with its answers.
import t from 'tap'
import { Type } from '@sinclair/typebox'
import { defineTool } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, serveApp } from '../../../helpers/ag-ui-app.ts'
import { call, calls, says, scriptedModel, type Chunk } from './scripted-model.ts'

const signed = { anthropic: { signature: 'sig' } }

const asking: Chunk[] = [
  { type: 'reasoning-start', id: 'r0' }, { type: 'reasoning-delta', id: 'r0', delta: 'Dangerous.' }, { type: 'reasoning-end', id: 'r0', providerMetadata: signed },
  ...calls(call('c1', 'delete', { name: 'a' }), call('c2', 'delete', { name: 'b' }), call('c3', 'look', {}))
]

function open (events: readonly WireEvent[]): { id: string, toolCallId: string }[] {
  const last = events.at(-1) as { outcome?: { interrupts?: { id: string, toolCallId: string }[] } } | undefined
  return last?.outcome?.interrupts ?? []
}

t.test('approvals are answered after a restart, with what the client kept or with nothing; each tool runs once', async (t) => {
  for (const keepsHistory of [true, false]) {
    const done: string[] = []
    const tools = [
      defineTool({ name: 'delete', parameters: Type.Object({ name: Type.String() }), needsApproval: true, execute: ({ name }) => { done.push(name); return `Deleted ${name}` } }),
      defineTool({ name: 'look', execute: () => 'a, b' })
    ]
    const store = memoryStore()
    const first = await serveApp(t, { agent: aiSdkAgent({ model: scriptedModel(asking).model, tools }), store, enableReasoning: true })
    const messages = [{ id: 'u1', role: 'user', content: 'Clean up' }]
    const paused = await eventsOf(await first.run({ messages }))
    t.strictSame(open(paused).map(({ toolCallId }) => toolCallId), ['c1', 'c2'])
    await first.app.close()
    t.strictSame(done, [])

    const { model, prompts } = scriptedModel(says('One is gone.'))
    const second = await serveApp(t, { agent: aiSdkAgent({ model, tools }), store, enableReasoning: true })
    const kept = [
      ...messages,
      {
        id: 'a1',
        role: 'assistant',
        toolCalls: [['c1', 'delete', '{"name":"forged"}'], ['c2', 'delete', '{"name":"forged"}'], ['c3', 'look', '{}']].map(([id, name, args]) => ({ id, type: 'function', function: { name, arguments: args } }))
      },
      { id: 't1', role: 'tool', toolCallId: 'c3', content: 'a, b' }
    ]
    const [c1, c2] = open(paused)
    const resumed = await eventsOf(await second.run({
      runId: 'run-2',
      messages: keepsHistory ? kept : [],
      resume: [
        { interruptId: c1?.id, status: 'resolved', payload: { approved: true, editedArgs: { name: 'A' } } },
        { interruptId: c2?.id, status: 'resolved', payload: { approved: false, reason: 'keep it' } }
      ]
    }))
    t.strictSame(done, ['A'])
    t.match(resumed.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ toolCallId: 'c1', content: 'Deleted A' }, { toolCallId: 'c2', content: 'keep it' }])
    t.strictSame(resumed.filter(({ type }) => type === 'TOOL_CALL_START'), [])
    t.match(resumed.at(-1), { type: 'RUN_FINISHED', outcome: { type: 'success' } })
    const turn = prompts[0]?.find(({ role }) => role === 'assistant')
    t.match(turn?.content, [
      { type: 'reasoning', text: 'Dangerous.', providerOptions: signed },
      { type: 'tool-call', toolCallId: 'c1', input: { name: 'A' } }, { type: 'tool-call', toolCallId: 'c2', input: { name: 'b' } }
    ])
    t.match(prompts[0]?.at(-1), { role: 'tool', content: [{ toolCallId: 'c1', output: { type: 'text', value: 'Deleted A' } }, { toolCallId: 'c2', output: { type: 'execution-denied', reason: 'keep it' } }] })
  }
})

t.test('a provider\'s failure ends the run in words that repeat nothing of it', async (t) => {
  const { model } = scriptedModel(() => Promise.reject(new Error('Incorrect API key sk-secret')))
  const { run, logs } = await serveApp(t, { agent: aiSdkAgent({ model }) })
  const text = await (await run()).text()
  t.match(text, /"type":"RUN_ERROR"/)
  t.match(text, /The model could not answer\./)
  t.notMatch(text, /secret/)
  t.ok(logs.some(({ level }) => level >= 40), 'but the operator is told')
})
