import { once } from 'node:events'
import { type LanguageModelV3CallOptions } from '@ai-sdk/provider'
import t from 'tap'
import { createRuntimeContext, defineTool, RunInterrupted } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { lines, run, user } from './run.ts'
import { call, calls, says, scriptedModel, text, type Chunk } from './scripted-model.ts'

/** A stream that says two words and then nothing, whatever happens; its request's signal is kept. */
function silent (signals: (AbortSignal | undefined)[]) {
  return scriptedModel(async function * (options: LanguageModelV3CallOptions): AsyncGenerator<Chunk> {
    signals.push(options.abortSignal)
    yield * text('t0', 'one ').slice(0, 2)
    yield { type: 'text-delta', id: 't0', delta: 'two' }
    await new Promise(() => {})
  })
}

t.test('an interrupted run ends with what it said, and the model is told at once', async (t) => {
  const signals: (AbortSignal | undefined)[] = []
  const { model } = silent(signals)
  const controller = new AbortController()
  const { events, message, error } = await run(aiSdkAgent({ model }), {
    messages: [user('Hi')],
    signal: controller.signal,
    onEvent: (event) => { if (event.type === 'TEXT_BLOCK_DELTA' && event.delta === 'two') controller.abort(new RunInterrupted('user')) }
  })
  t.equal(error, undefined)
  t.strictSame(lines(events), [
    'MODEL_CALL_START 1', 'TEXT_BLOCK_START 1/t0', 'TEXT_BLOCK_DELTA 1/t0 "one "', 'TEXT_BLOCK_DELTA 1/t0 "two"', 'TEXT_BLOCK_END 1/t0', 'MODEL_CALL_END 1', 'AGENT_END INTERRUPTED'
  ])
  t.strictSame(message?.content, [{ type: 'text', text: 'one two' }])
  t.equal(signals[0]?.aborted, true)
  t.equal((signals[0]?.reason as Error).name, 'AbortError')
})

t.test('any other reason is thrown on as it is, while a request is under way, too', async (t) => {
  const reason = new TypeError('timeout')
  const controller = new AbortController()
  const signals: (AbortSignal | undefined)[] = []
  const { model } = scriptedModel((options) => {
    signals.push(options.abortSignal)
    controller.abort(reason)
    return new Promise<never>(() => {})
  })
  const { error } = await run(aiSdkAgent({ model }), { messages: [user('Hi')], signal: controller.signal })
  t.equal(error, reason)
  t.equal(signals[0]?.aborted, true)
})

t.test('a stream that opens after the stop is cancelled unread', async (t) => {
  const controller = new AbortController()
  let answer = (_chunks: Iterable<Chunk>): void => {}
  const script = scriptedModel(() => {
    controller.abort(new RunInterrupted('user'))
    return new Promise((resolve) => { answer = resolve })
  })
  const { events } = await run(aiSdkAgent({ model: script.model }), { messages: [user('Hi')], signal: controller.signal })
  t.equal(lines(events).at(-1), 'AGENT_END INTERRUPTED')
  answer(says(...Array.from({ length: 100 }, () => 'late')))
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => { setImmediate(resolve) })
  t.strictSame([script.taken(), script.cancelled()], [0, 1])
})

t.test('a model that fails because it was aborted, by the name that ai knows or another, ends the run like any', async (t) => {
  for (const name of ['AbortError', 'ResponseAborted', 'Strange']) {
    const controller = new AbortController()
    const { model } = scriptedModel(async function * (options: LanguageModelV3CallOptions): AsyncGenerator<Chunk> {
      yield * text('t0', 'one').slice(0, 2)
      controller.abort(new RunInterrupted('user'))
      throw Object.assign(new Error('gone'), { name, cause: options.abortSignal?.reason })
    })
    const { events, error } = await run(aiSdkAgent({ model }), { messages: [user('Hi')], signal: controller.signal })
    t.equal(error, undefined)
    t.equal(lines(events).at(-1), 'AGENT_END INTERRUPTED')
  }
})

t.test('a tool at work is stopped, its result is ended, and no model is asked again', async (t) => {
  const controller = new AbortController()
  let seen: AbortSignal | undefined
  const slow = defineTool({
    name: 'slow',
    execute: async (_input, { signal }) => {
      seen = signal
      controller.abort(new RunInterrupted('user'))
      if (!signal.aborted) await once(signal, 'abort')
      signal.throwIfAborted()
    }
  })
  const { model, prompts } = scriptedModel(calls(call('c1', 'slow', {}), call('c2', 'quick', {})))
  const quick = defineTool({ name: 'quick', execute: () => 'done' })
  const { events } = await run(aiSdkAgent({ model, tools: [slow, quick] }), { messages: [user('Hi')], signal: controller.signal })
  t.strictSame(lines(events).slice(-6), [
    'TOOL_RESULT_START 2/c1', 'TOOL_RESULT_START 2/c2', 'TOOL_RESULT_END 2/c1 interrupted', 'TOOL_RESULT_TEXT_DELTA 2/c2 "done"', 'TOOL_RESULT_END 2/c2 success', 'AGENT_END INTERRUPTED'
  ])
  t.equal(seen?.aborted, true)
  t.equal(prompts.length, 1)
})

t.test('a run whose signal has fired asks no model and runs no decided tool', async (t) => {
  let ran = 0
  const touch = defineTool({ name: 'touch', needsApproval: true, execute: () => { ran++ } })
  const { model, prompts } = scriptedModel(says('no'))
  const signal = AbortSignal.abort(new RunInterrupted('system'))
  const agent = aiSdkAgent({ model, tools: [touch] })
  t.equal(lines((await run(agent, { messages: [user('Hi')], signal })).events).at(-1), 'AGENT_END INTERRUPTED')
  const toolCall = { type: 'tool_use', id: 'c1', name: 'touch', input: {} } as const
  await run(agent, { messages: [user('Hi')], signal, resume: [{ kind: 'confirm', toolCallId: 'c1', approved: true, toolCall }], knownCalls: new Set(['c1']) })
  t.strictSame([ran, prompts.length], [0, 0])
})

t.test('a reader that leaves cancels the model\'s stream, or the tools at work', async (t) => {
  const signals: (AbortSignal | undefined)[] = []
  const script = silent(signals)
  const input = { messages: [user('Hi')], history: 'replace' as const }
  for await (const event of aiSdkAgent({ model: script.model }).stream(input, createRuntimeContext({ sessionId: 's' }))) {
    if (event.type === 'TEXT_BLOCK_DELTA') break
  }
  t.equal(signals[0]?.aborted, true)
  t.equal(script.cancelled(), 1)

  const returned: string[] = []
  const endless = (name: string) => defineTool({
    name,
    async * execute () {
      try {
        for (;;) yield 'more'
      } finally {
        returned.push(name)
      }
    }
  })
  const { model } = scriptedModel(calls(call('c1', 'a', {}), call('c2', 'b', {})))
  let count = 0
  for await (const event of aiSdkAgent({ model, tools: [endless('a'), endless('b')] }).stream(input, createRuntimeContext({ sessionId: 's' }))) {
    if (event.type === 'TOOL_RESULT_TEXT_DELTA' && ++count === 10) break
  }
  t.strictSame(returned.sort(), ['a', 'b'])
})
