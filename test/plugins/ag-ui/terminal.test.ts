import t from 'tap'
import { AgentError, type AgentEventInit } from '../../../lib/agent/index.ts'
import { runError } from '../../../plugins/ag-ui/errors.ts'
import { type AgUiEvent } from '../../../plugins/ag-ui/event-schemas.ts'
import { type MappingRun } from '../../../plugins/ag-ui/events.ts'
import { type NormalisedInput } from '../../../plugins/ag-ui/schemas.ts'
import { type RunEnd } from '../../../plugins/ag-ui/terminal.ts'
import { call, input, legacyInput, message, NOW, project, terminal, text, thinking } from './project.ts'

const boundaries = { threadId: 'th-7', runId: 'rn-1' }
const legacy: Partial<MappingRun> = { input: legacyInput }
const error = (code: string, text: string): AgUiEvent => ({ type: 'RUN_ERROR', message: text, code, timestamp: NOW })
const failed = (cause: unknown, code = 'internal_error'): RunEnd => ({ kind: 'failed', error: { code, message: 'The agent failed.', cause } })

t.test('a run starts', async (t) => {
  const start = (given: NormalisedInput, options = {}): unknown => project([], options, { input: given })[0]

  t.test('with the version spoken here, its lineage and the request', async (t) => {
    const given: NormalisedInput = { ...input, protocolVersion: '1.7', parentRunId: 'rn-0', forwardedProps: { a: null } }
    t.strictSame(start(given), { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0', parentRunId: 'rn-0', input: given })
  })

  t.test('without the request, or with what is left of it', async (t) => {
    t.strictSame(start(input, { echoInput: false }), { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0' })
    t.strictSame(start({ ...input, state: 'secret' }, { echoInput: ({ state, ...rest }: NormalisedInput) => rest }), { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0', input })
    t.strictSame(start(input, { echoInput: () => undefined }), { type: 'RUN_STARTED', ...boundaries, protocolVersion: '1.0' })
  })

  t.test('with an echo that clients before 1.0 do not throw on', async (t) => {
    const given: NormalisedInput = {
      ...legacyInput,
      messages: [
        { id: 'u', role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'document', source: { type: 'file', value: 'file-1' } }] },
        { id: 'v', role: 'user', content: [{ type: 'image', source: { type: 'url', value: 'https://x' } }] },
        { id: 't', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] }
      ]
    }
    t.strictSame(start(given), {
      type: 'RUN_STARTED',
      ...boundaries,
      protocolVersion: '1.0',
      input: {
        ...given,
        messages: [
          { id: 'u', role: 'user', content: [{ type: 'text', text: 'see' }, { type: 'text', text: '[document]' }] },
          given.messages[1],
          { id: 't', role: 'tool', toolCallId: 'c', content: 'a\nb' }
        ]
      }
    })
  })
})

t.test('a run ends', async (t) => {
  t.test('in success, with the outcome only where the client knows outcomes', async (t) => {
    const end: RunEnd = { kind: 'completed', reason: 'MODEL_STOP', message }
    t.strictSame(terminal(end), { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'success' } })
    t.strictSame(terminal(end, {}, legacy), { type: 'RUN_FINISHED', ...boundaries })
  })

  t.test('in success with structured output as its result, and with none where it is null', async (t) => {
    const end = (output: unknown): RunEnd => ({ kind: 'completed', reason: 'STRUCTURED_OUTPUT', message: { ...message, metadata: { _structured_output: output as never } } })
    t.strictSame(terminal(end({ a: 1 })), { type: 'RUN_FINISHED', ...boundaries, result: { a: 1 }, outcome: { type: 'success' } })
    t.strictSame(terminal(end(null)), { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'success' } })
  })

  t.test('stopped, in the way the client understands', async (t) => {
    t.strictSame(terminal({ kind: 'cancelled' }), { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'cancelled' } })
    t.strictSame(terminal({ kind: 'cancelled' }, {}, legacy), error('CANCELLED', 'The run was stopped.'))
    t.strictSame(terminal({ kind: 'cancelled', message: 'Bye' }, {}, legacy), error('CANCELLED', 'Bye'))
    t.strictSame(terminal({ kind: 'cancelled' }, { legacyCancel: 'finished' }, legacy), { type: 'RUN_FINISHED', ...boundaries })
  })

  t.test('interrupted: in good order by the agent itself, in an error by anything else', async (t) => {
    t.strictSame(terminal({ kind: 'interrupted', why: 'agent' }), { type: 'RUN_FINISHED', ...boundaries, outcome: { type: 'cancelled' } })
    t.strictSame(terminal({ kind: 'interrupted', why: 'agent' }, {}, legacy), { type: 'RUN_FINISHED', ...boundaries })
    for (const why of ['disconnect', 'shutdown', 'superseded'] as const) {
      const last = terminal({ kind: 'interrupted', why })
      t.equal(last?.type === 'RUN_ERROR' && last.code, 'INTERRUPTED_ERROR')
    }
  })

  t.test('in a timeout', async (t) => {
    t.strictSame(terminal({ kind: 'timeout' }), error('TIMEOUT_ERROR', 'The run took longer than it may.'))
  })

  t.test('in a failure whose code says what kind it was', async (t) => {
    const code = (end: RunEnd): unknown => {
      const last = terminal(end)
      return last?.type === 'RUN_ERROR' && last.code
    }
    t.equal(code(failed(new Error('secret'))), 'INTERNAL_ERROR')
    t.equal(code(failed(undefined)), 'INTERNAL_ERROR')
    t.equal(code(failed('text', '')), 'INTERNAL_ERROR')
    t.equal(code(failed(Object.assign(new Error('x'), { name: 'TimeoutError' }))), 'TIMEOUT_ERROR')
    t.equal(code(failed(Object.assign(new Error('x'), { code: 'ETIMEDOUT' }))), 'TIMEOUT_ERROR')
    t.equal(code(failed(Object.assign(new Error('x'), { code: 7 }))), 'INTERNAL_ERROR')
    t.equal(code(failed(new AgentError({ code: 'model_timeout', message: 'x' }), 'model_timeout')), 'TIMEOUT_ERROR')
    t.equal(code(failed(Object.assign(new Error('x'), { name: 'AbortError' }))), 'INTERRUPTED_ERROR')
    t.equal(code(failed(undefined, 'STORE_UNAVAILABLE')), 'STORE_UNAVAILABLE')
    t.equal(code(failed(undefined, 'rate_limited')), 'rate_limited')
  })

  t.test('in a failure whose text is shown only where that was asked for, and is never empty', async (t) => {
    const cause = new Error('password is hunter2')
    t.strictSame(terminal(failed(cause)), error('INTERNAL_ERROR', 'The agent failed.'))
    t.strictSame(terminal(failed(cause), { exposeErrors: true }), error('INTERNAL_ERROR', 'password is hunter2'))
    t.strictSame(terminal(failed(new TypeError('')), { exposeErrors: true }), error('INTERNAL_ERROR', 'The agent failed.'))
    t.strictSame(terminal({ kind: 'failed', error: { code: 'x', message: '', cause: new TypeError('') } }), error('x', 'TypeError'))
    t.strictSame(terminal({ kind: 'failed', error: { code: 'x', message: '' } }), error('x', 'Error'))
  })

  t.test('with what it has used, in success and in failure, unless told not to', async (t) => {
    const used: AgentEventInit[] = [{ type: 'MODEL_CALL_END', replyId: 'r', usage: { inputTokens: 3, outputTokens: 4, cachedTokens: 2, reasoningTokens: 1, cacheCreationTokens: 1 } }]
    const usage = [{ inputTokens: 3, outputTokens: 4, totalTokens: 7, reasoningTokens: 1, cachedInputTokens: 2, cacheWriteInputTokens: 1 }]
    t.match(terminal({ kind: 'cancelled' }, {}, {}, used), { usage })
    t.match(terminal({ kind: 'timeout' }, {}, {}, used), { usage })
    t.notHas(terminal({ kind: 'timeout' }, { emitRunUsage: false }, {}, used), 'usage')
  })
})

t.test('what is open is ended first, in order, whatever the end', async (t) => {
  const open: AgentEventInit[] = [
    ...call('r1', 'c1', 'f').slice(0, 2), thinking('r2', 'hm'), text('r3', 'a'), { type: 'TOOL_CALL_START', replyId: 'r4', toolCallId: 'c2', toolCallName: 'f' }
  ]
  for (const end of [{ kind: 'completed', reason: 'MODEL_STOP', message }, { kind: 'timeout' }, failed(new Error('x'))] as RunEnd[]) {
    const types = project(open, { enableReasoning: true }, {}, end).slice(-5).map((event) => 'messageId' in event ? `${event.type} ${event.messageId}` : event.type)
    t.strictSame(types, ['TEXT_MESSAGE_END r3', 'REASONING_MESSAGE_END r2-reasoning', 'TOOL_CALL_END', 'TOOL_CALL_END', end.kind === 'completed' ? 'RUN_FINISHED' : 'RUN_ERROR'])
  }
})

t.test('emitRunFinishedAfterError adds what bespoke front ends of old wait for', async (t) => {
  t.strictSame(project([], { emitRunFinishedAfterError: true }, {}, { kind: 'timeout' }).slice(1), [
    error('TIMEOUT_ERROR', 'The run took longer than it may.'), { type: 'RUN_FINISHED', ...boundaries }
  ])
})

t.test('a RUN_ERROR has a whole number of milliseconds', async (t) => {
  t.strictSame(runError('X', 'text', 12.7), { type: 'RUN_ERROR', message: 'text', code: 'X', timestamp: 12 })
  t.strictSame(runError('X', 'text', 12, []), { type: 'RUN_ERROR', message: 'text', code: 'X', timestamp: 12 })
})

t.test('a pause', async (t) => {
  const toolCall = { type: 'tool_use' as const, id: 'c4', name: 'delete_file', input: { path: '/tmp/a' }, content: '{"path":"/tmp/a"}' }

  t.test('of recorded interrupts tells their ids and when they expire', async (t) => {
    const pending = { kind: 'confirm' as const, replyId: 'rep-3', toolCall }
    t.match(terminal({ kind: 'paused', pending: [pending], interrupts: [{ id: 'other', pending, expiresAt: NOW }], message }), {
      outcome: { type: 'interrupt', interrupts: [{ id: 'other', expiresAt: '2023-11-14T22:13:20.000Z' }] }
    })
  })

  t.test('of a suspended call tells what the call said, from its result or from the agent\'s own', async (t) => {
    const pending = { kind: 'external' as const, replyId: 'rep-3', toolCall }
    const paused: RunEnd = { kind: 'paused', pending: [pending], interrupts: [], message }
    const said: AgentEventInit[] = [
      { type: 'TOOL_RESULT_TEXT_DELTA', toolCallId: 'c4', delta: 'Needs a shell' }, { type: 'TOOL_RESULT_END', toolCallId: 'c4', state: 'running' }
    ]
    const block = { type: 'tool_result' as const, id: 'c4', output: [{ type: 'text' as const, text: 'From the result' }], state: 'running' as const }
    const own: AgentEventInit = { type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [block, { ...block, id: 'c5', state: 'success' }, { type: 'text', text: 'x' }] } }
    const outcome = (text: string): object => ({ outcome: { type: 'interrupt', interrupts: [{ id: 'rep-3:c4', message: text }] } })
    t.match(terminal(paused, {}, {}, said), outcome('Needs a shell'))
    t.match(terminal(paused, {}, {}, [own]), outcome('From the result'))
    t.match(terminal(paused, {}, {}, [...said, own]), outcome('Needs a shell'))
  })

  t.test('that nothing came of is a success', async (t) => {
    t.match(terminal({ kind: 'paused', pending: [], interrupts: [], message }), { outcome: { type: 'success' } })
  })

  t.test('of a call without an id cannot be told, and is an error', async (t) => {
    const pending = { kind: 'external' as const, replyId: 'r', toolCall: { ...toolCall, id: '' } }
    t.match(terminal({ kind: 'paused', pending: [pending], interrupts: [], message }), { type: 'RUN_ERROR', code: 'INVALID_INPUT_ERROR' })
  })
})
