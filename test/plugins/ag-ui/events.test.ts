import t from 'tap'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { between, call, completed, input, legacyInput, project, result, text, thinking } from './project.ts'

t.test('a turn with text, a tool and text gives the stream of the specification', async (t) => {
  const events = project([
    { type: 'AGENT_START', sessionId: 'th-7', replyId: 'rep-1', name: 'main' },
    { type: 'MODEL_CALL_START', replyId: 'rep-1' },
    { type: 'TEXT_BLOCK_START', replyId: 'rep-1', blockId: 'text' },
    text('rep-1', 'Looking up'),
    { type: 'TEXT_BLOCK_END', replyId: 'rep-1', blockId: 'text' },
    ...call('rep-1', 'c1', 'weather', '{"city":"Bonn"}'),
    { type: 'MODEL_CALL_END', replyId: 'rep-1', model: 'm', usage: { inputTokens: 40, outputTokens: 7 } },
    ...result('act-1', 'c1', '12 C'),
    text('rep-2', '12 degrees.'),
    { type: 'TEXT_BLOCK_END', replyId: 'rep-2', blockId: 'text' },
    { type: 'MODEL_CALL_END', replyId: 'rep-2', model: 'm', usage: { inputTokens: 50, outputTokens: 5 } },
    { type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [] } },
    { type: 'AGENT_END', replyId: 'rep-1' }
  ])
  t.strictSame(events, [
    { type: 'RUN_STARTED', threadId: 'th-7', runId: 'rn-1', protocolVersion: '1.0', input },
    { type: 'TEXT_MESSAGE_START', messageId: 'rep-1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'rep-1', delta: 'Looking up' },
    { type: 'TEXT_MESSAGE_END', messageId: 'rep-1' },
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'weather', parentMessageId: 'rep-1' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"city":"Bonn"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TOOL_CALL_RESULT', messageId: 'act-1:c1', toolCallId: 'c1', content: '12 C', role: 'tool' },
    { type: 'TEXT_MESSAGE_START', messageId: 'rep-2', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'rep-2', delta: '12 degrees.' },
    { type: 'TEXT_MESSAGE_END', messageId: 'rep-2' },
    {
      type: 'RUN_FINISHED',
      threadId: 'th-7',
      runId: 'rn-1',
      outcome: { type: 'success' },
      usage: [{ model: 'm', inputTokens: 90, outputTokens: 12, totalTokens: 102 }]
    }
  ])
})

t.test('text', async (t) => {
  t.test('starts with its first words and stays silent without any', async (t) => {
    t.strictSame(between([
      { type: 'TEXT_BLOCK_START', replyId: 'r', blockId: 'text' }, text('r', ''), { type: 'TEXT_BLOCK_END', replyId: 'r', blockId: 'text' }
    ]), [])
  })

  t.test('is escaped as JSON escapes it, whatever is in it', async (t) => {
    const deltas = ['plain', 'say "hi"\\', 'a\nb\tc', '\u0000\u001f', 'ü€', '😀', '\u2028\u2029\u0085', '']
    const events = between(deltas.map((delta) => text('r', delta))) as (AgUiEvent & { delta?: string })[]
    t.strictSame(events.slice(1, -1).map(({ delta }) => delta), deltas)
  })

  t.test('under an id with quotes and line breaks stays one line of JSON', async (t) => {
    const id = 'a"\ndata: forged'
    t.strictSame(between([text(id, 'x')]).map((event) => (event as { messageId: string }).messageId), [id, id, id])
  })

  t.test('after a tool call of the same reply is a message of its own, with no explicit end anywhere', async (t) => {
    t.strictSame(between([text('r', 'one'), ...call('r', 'c', 'f'), text('r', 'two')]), [
      { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'one' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r' },
      { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'r' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
      { type: 'TOOL_CALL_END', toolCallId: 'c' },
      { type: 'TEXT_MESSAGE_START', messageId: 'r:text', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r:text', delta: 'two' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r:text' }
    ])
  })

  t.test('of a third block under the same names still gets an id of its own', async (t) => {
    const ids = between([text('r', '1'), ...call('r', 'a', 'f'), text('r', '2'), ...call('r', 'b', 'f'), text('r', '3')])
      .flatMap((event) => event.type === 'TEXT_MESSAGE_START' ? [event.messageId] : [])
    t.strictSame(ids, ['r', 'r:text', 'r:text:2'])
  })

  t.test('of two blocks of one reply interleaves under two ids', async (t) => {
    t.strictSame(between([text('r', 'A', '1'), text('r', 'B', '2'), text('r', 'a', '1'), text('r', 'b', '2')]), [
      { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'A' },
      { type: 'TEXT_MESSAGE_START', messageId: 'r:2', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r:2', delta: 'B' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'a' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r:2', delta: 'b' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r:2' }
    ])
  })

  t.test('under a reply id that the thread has used before gets the run in its id', async (t) => {
    const run = { input: { ...input, messages: [{ id: 'r', role: 'assistant' as const, content: 'earlier' }] } }
    t.strictSame(between([text('r', 'now')], {}, run)[0], { type: 'TEXT_MESSAGE_START', messageId: 'r:rn-1', role: 'assistant' })
  })

  t.test('of an agent that names nothing is told under the run\'s id', async (t) => {
    t.strictSame(between([{ type: 'TEXT_BLOCK_DELTA', delta: 'x' }])[0], { type: 'TEXT_MESSAGE_START', messageId: 'rn-1', role: 'assistant' })
  })
})

t.test('thinking', async (t) => {
  t.test('is not sent unless enabled, and does not cut the text around it', async (t) => {
    t.strictSame(between([text('r', 'a'), thinking('r', 'secret'), text('r', 'b')]), [
      { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'a' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'b' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r' }
    ])
  })

  t.test('and text of one reply take turns, each piece under an id of its own', async (t) => {
    t.strictSame(between([
      thinking('r', ''), thinking('r', 'Hm'), thinking('r', ', yes'), text('r', 'A'), thinking('r', 'and'), text('r', 'B'),
      { type: 'THINKING_BLOCK_END', replyId: 'r', blockId: 'thinking' }
    ], { enableReasoning: true }), [
      { type: 'REASONING_MESSAGE_START', messageId: 'r-reasoning', role: 'reasoning' },
      { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r-reasoning', delta: 'Hm' },
      { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r-reasoning', delta: ', yes' },
      { type: 'REASONING_MESSAGE_END', messageId: 'r-reasoning' },
      { type: 'TEXT_MESSAGE_START', messageId: 'r', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r', delta: 'A' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r' },
      { type: 'REASONING_MESSAGE_START', messageId: 'r-reasoning:thinking', role: 'reasoning' },
      { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r-reasoning:thinking', delta: 'and' },
      { type: 'REASONING_MESSAGE_END', messageId: 'r-reasoning:thinking' },
      { type: 'TEXT_MESSAGE_START', messageId: 'r:text', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'r:text', delta: 'B' },
      { type: 'TEXT_MESSAGE_END', messageId: 'r:text' }
    ])
  })

  t.test('ends with its block, and with a tool call', async (t) => {
    const types = between([
      thinking('r', 'x'), { type: 'THINKING_BLOCK_END', replyId: 'r', blockId: 'thinking' },
      thinking('s', 'y'), { type: 'TOOL_CALL_START', replyId: 's', toolCallId: 'c', toolCallName: 'f' }
    ], { enableReasoning: true }).map(({ type }) => type)
    t.strictSame(types, [
      'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END',
      'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', 'TOOL_CALL_START', 'TOOL_CALL_END'
    ])
  })
})

t.test('custom events keep name and value, and a missing value is null', async (t) => {
  t.strictSame(between([
    { type: 'CUSTOM', name: 'state_updated', value: { a: null } },
    { type: 'CUSTOM', name: 'bare' } as never
  ]), [
    { type: 'CUSTOM', name: 'state_updated', value: { a: null } },
    { type: 'CUSTOM', name: 'bare', value: null }
  ])
})

t.test('an event without a counterpart', async (t) => {
  const hint = { type: 'HINT_BLOCK', replyId: 'r', blockId: 'h', hint: 'team says hi' } as const
  const stop = { type: 'REQUEST_STOP', reason: 'why' } as const
  const raw = (event: object) => ({ type: 'RAW', event: { id: 'e', createdAt: '2026-01-01T00:00:00Z', ...event } })

  t.test('is RAW, as the reference sends it', async (t) => {
    t.strictSame(between([hint, stop, { type: 'EXCEED_MAX_ITERS', maxIters: 3, currentIter: 3 }]), [
      raw(hint), raw(stop), raw({ type: 'EXCEED_MAX_ITERS', maxIters: 3, currentIter: 3 })
    ])
  })

  t.test('has a name of its own where that is asked for', async (t) => {
    t.strictSame(between([
      hint,
      stop,
      { type: 'EXCEED_MAX_ITERS', replyId: '', maxIters: 3, currentIter: 3 },
      { type: 'DATA_BLOCK_START', replyId: 'r', blockId: 'd', mediaType: 'image/png' }
    ], { mapExtras: 'custom' }), [
      { type: 'CUSTOM', name: 'agentscope.hint', value: hint },
      { type: 'CUSTOM', name: 'agentscope.exceed_max_iters', value: { type: 'EXCEED_MAX_ITERS', replyId: '', maxIters: 3, currentIter: 3 } },
      { type: 'CUSTOM', name: 'agentscope.data_block', value: { type: 'DATA_BLOCK_START', replyId: 'r', blockId: 'd', mediaType: 'image/png' } }
    ])
  })

  t.test('is left out with rawFallback: false', async (t) => {
    t.strictSame(between([hint, stop], { rawFallback: false }), [])
  })
})

t.test('what is told by its consequences has no event of its own', async (t) => {
  t.strictSame(between([
    { type: 'USER_CONFIRM_RESULT', replyId: 'r', confirmResults: [] },
    { type: 'EXTERNAL_EXECUTION_RESULT', replyId: 'r', toolResults: [] },
    { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [] },
    { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId: 'r', toolCalls: [] },
    { type: 'REQUIRE_INPUT', replyId: 'r', requests: [] }
  ]), [])
})

t.test('parts of the newest message that were left out are told', async (t) => {
  t.strictSame(between([], {}, { skipped: [{ messageId: 'u1', partType: 'document', index: 1 }] }), [
    { type: 'CUSTOM', name: 'agentscope.content_skipped', value: { messageId: 'u1', partType: 'document', index: 1 } }
  ])
})

t.test('two runs of one configuration know nothing of each other', async (t) => {
  const once = project([text('r', 'x'), ...call('r', 'c', 'f')], {}, {}, completed)
  const again = project([text('r', 'x'), ...call('r', 'c', 'f')], {}, {}, completed)
  t.strictSame(again, once)
})

t.test('nothing follows the terminal, not even a second one', async (t) => {
  const { createProjection } = await import('../../../plugins/ag-ui/events.ts')
  const { resolveMappingConfig } = await import('../../../plugins/ag-ui/config.ts')
  const { stamp } = await import('./project.ts')
  const types: string[] = []
  const emit = (data: string): void => { types.push(JSON.parse(data).type) }
  const projection = createProjection(resolveMappingConfig(), { input: legacyInput })
  projection.open(emit)
  projection.close(completed, emit)
  projection.next(stamp(text('r', 'late')), emit)
  projection.close({ kind: 'timeout' }, emit)
  t.strictSame(types, ['RUN_STARTED', 'RUN_FINISHED'])
})
