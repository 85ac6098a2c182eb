import jsonpatch from 'fast-json-patch'
import fc from 'fast-check'
import t from 'tap'
import { applyPatch } from '../../../plugins/ag-ui/json-patch.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { clients } from './clients.ts'
import { project } from './streams.ts'

const start = '{"type":"RUN_STARTED","threadId":"thread","runId":"run"}'
const finish = '{"type":"RUN_FINISHED","threadId":"thread","runId":"run"}'
const failure = '{"type":"RUN_ERROR","message":"x","code":"X"}'

for (const client of clients) {
  const input: NormalisedInput = {
    threadId: 'thread',
    runId: 'run',
    messages: [{ id: 'u1', role: 'user', content: 'Hi' }],
    tools: [{ name: 'paint', description: '' }],
    context: [],
    ...client.profile === 'v1' && { protocolVersion: '1.0' }
  }

  t.test(`client ${client.version} throws at what this harness must notice`, async (t) => {
    await t.rejects(client.watch([finish]))
    await t.rejects(client.watch([start, failure, finish]), 'why emitRunFinishedAfterError is off')
    await t.rejects(client.watch([start, '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}', finish]))
    await t.rejects(client.watch([start, '{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}', finish]))
    const told = await client.watch([start, failure])
    t.strictSame(told.errors, ['X'])
  })

  t.test(`client ${client.version} ends with the transcript that the agent meant`, async (t) => {
    const lines = project([
      { type: 'THINKING_BLOCK_DELTA', replyId: 'r1', blockId: 'thinking', delta: 'Hm' },
      { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', blockId: 'text', delta: 'Looking up' },
      { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'A', toolCallName: 'f' },
      { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'B', toolCallName: 'g' },
      { type: 'TOOL_CALL_DELTA', replyId: 'r1', toolCallId: 'B', delta: '{"b":' },
      { type: 'TOOL_CALL_DELTA', replyId: 'r1', toolCallId: 'A', delta: '{"a":1}' },
      { type: 'TOOL_CALL_DELTA', replyId: 'r1', toolCallId: 'B', delta: '2}' },
      { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'B', delta: 'two' },
      { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'B', state: 'success' },
      { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'A', state: 'success' },
      { type: 'TEXT_BLOCK_DELTA', replyId: 'r2', blockId: 'text', delta: 'Split \ud83d' },
      { type: 'TEXT_BLOCK_DELTA', replyId: 'r2', blockId: 'text', delta: '\ude00!' }
    ], 'returned', { input }, { enableReasoning: true })
    const { messages, warnings } = await client.watch(lines, { messages: input.messages })
    t.strictSame(warnings, [])
    t.strictSame(messages, [
      { id: 'u1', role: 'user', content: 'Hi' },
      { id: 'r1-reasoning', role: 'reasoning', content: 'Hm' },
      {
        id: 'r1',
        role: 'assistant',
        content: 'Looking up',
        toolCalls: [{ id: 'A', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'B', type: 'function', function: { name: 'g', arguments: '{"b":2}' } }]
      },
      { id: 'act:B', role: 'tool', toolCallId: 'B', content: 'two' },
      { id: 'act:A', role: 'tool', toolCallId: 'A', content: '' },
      { id: 'r2', role: 'assistant', content: 'Split 😀!' }
    ])
  })

  t.test(`client ${client.version} knows what an approval waits for, and is not held up by a tool of the page`, async (t) => {
    const confirm = { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'rm', input: { path: '/' } }] }
    const waiting = await client.watch(project([confirm], 'returned', { input }), { messages: input.messages })
    t.match(waiting.pendingInterrupts, [{ id: 'r:c', reason: 'tool_call', toolCallId: 'c', metadata: { 'agentscope.interruptKind': 'permission_confirm' } }])
    const page = { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'p', name: 'paint', input: {} }] }
    t.strictSame((await client.watch(project([page], 'returned', { input }), { messages: input.messages })).pendingInterrupts, [])
  })
}

t.test('patches apply as in the official client', async (t) => {
  const value = fc.jsonValue({ maxDepth: 2 })
  const path = fc.constantFrom('', '/a', '/b', '/a/0', '/a/-', '/a/b', '/list/0', '/list/1', '/list/-', '/list/7', '/x~1y')
  const operation = fc.oneof(
    fc.record({ op: fc.constantFrom('add', 'replace', 'test'), path, value }),
    fc.record({ op: fc.constant('remove'), path }),
    // The client's library moves a document into itself, which makes a ring, and what is not there to the root.
    fc.record({ op: fc.constantFrom('move', 'copy'), path, from: path }).filter(({ op, path, from }) => path !== '' && (op === 'copy' || !path.startsWith(`${from}/`)))
  )
  const document = fc.record({ a: value, list: fc.array(value, { maxLength: 3 }), 'x/y': value }, { requiredKeys: ['list'] })
  fc.assert(fc.property(document, fc.array(operation, { maxLength: 3 }), (before, patch) => {
    // A root that has become a mere value takes members without a word there.
    fc.pre(patch.every(({ path }, index) => path !== '' || index === patch.length - 1))
    let theirs: unknown
    try {
      theirs = { value: jsonpatch.applyPatch(structuredClone(before), structuredClone(patch) as never, true, false).newDocument }
    } catch {
      theirs = undefined
    }
    const ours = applyPatch(before, patch as never)
    if (JSON.stringify(ours) !== JSON.stringify(theirs)) throw new Error(`${JSON.stringify(patch)} on ${JSON.stringify(before)}: ${JSON.stringify(ours)}, not ${JSON.stringify(theirs)}`)
  }), { numRuns: 2_000 })
  t.pass('2000 patches')
})
