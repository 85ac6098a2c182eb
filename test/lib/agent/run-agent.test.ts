import { mock } from 'node:test'
import t from 'tap'
import { type Agent, AgentError, type AgentEvent, type AgentEventInit, createRuntimeContext, RunInterrupted, runAgent, type RuntimeContext, type RunAgentOptions } from '../../../lib/agent/index.ts'
import { findViolations } from '../../helpers/well-formed.ts'

const input = { messages: [], history: 'append' } as const
const delta: AgentEventInit = { type: 'TEXT_BLOCK_DELTA', delta: 'a' }

function agentOf (stream: (context: RuntimeContext) => unknown): Agent {
  return { name: 'tester', stream: (_, context) => stream(context) as AsyncIterable<AgentEventInit> }
}

/** Everything until the end, and what was thrown. */
async function collect (events: AsyncIterable<AgentEvent>): Promise<{ types: string[], all: AgentEvent[], error?: unknown }> {
  const all: AgentEvent[] = []
  try {
    for await (const event of events) all.push(event)
    return { types: all.map(({ type }) => type), all }
  } catch (error) {
    return { types: all.map(({ type }) => type), all, error }
  }
}

function run (stream: (context: RuntimeContext) => unknown, signal?: AbortSignal, options?: RunAgentOptions): AsyncGenerator<AgentEvent, void, undefined> {
  return runAgent(agentOf(stream), { ...input, messages: [] }, createRuntimeContext({ sessionId: 's', signal }), options)
}

t.test('an agent that returns gives a whole stream', async (t) => {
  const { types, all, error } = await collect(run(async function * () { yield delta }))
  t.equal(error, undefined)
  t.strictSame(types, ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END'])
  t.strictSame(findViolations(all, { end: 'complete' }), [])
})

t.test('after the end there is nothing', async (t) => {
  const events = run(async function * () {})
  await collect(events)
  t.strictSame(await events.next(), { done: true, value: undefined })
  t.strictSame(await events.return(), { done: true, value: undefined })
})

t.test('calls of next may overlap', async (t) => {
  const events = run(async function * () { yield delta })
  const results = await Promise.all(Array.from({ length: 8 }, () => events.next()))
  t.strictSame(results.map(({ value }) => value?.type), ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END', undefined, undefined])
})

const failures = {
  'an error': new Error('broken'),
  'an AgentError': new AgentError({ code: 'quota', message: 'No tokens left', retryable: true }),
  'an error whose cause is itself': Object.assign(new Error('loop'), { cause: null as unknown })
}
failures['an error whose cause is itself'].cause = failures['an error whose cause is itself']
for (const [name, thrown] of Object.entries(failures)) {
  t.test(`${name} closes what is open and is thrown on`, async (t) => {
    const { types, all, error } = await collect(run(async function * () {
      yield delta
      yield { type: 'AGENT_RESULT', result: { id: 'm', role: 'ASSISTANT', content: [] } }
      yield { type: 'AGENT_END' }
      throw thrown
    }))
    t.equal(error, thrown)
    t.strictSame(types, ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END'])
    t.strictSame(findViolations(all, { end: 'failed' }), [])
  })
}

t.test('what is no error is thrown on as the cause of one', async (t) => {
  for (const thrown of [undefined, null, 'text', { a: 1 }]) {
    const { error } = await collect(run(async function * () { throw thrown }))
    t.match(error, { name: 'AgentError', code: 'internal_error', publicMessage: 'The agent failed.' })
    t.strictSame((error as Error).cause, thrown)
  }
})

t.test('an agent that throws before anything, in stream() or in its finally, or gives nothing to iterate, fails the stream', async (t) => {
  const broken = new Error('broken')
  t.strictSame(await collect(run(() => { throw broken })), { types: [], all: [], error: broken })
  t.strictSame(await collect(run(async function * () { throw broken })), { types: [], all: [], error: broken })
  t.match(await collect(run(async function * () { try { yield delta } finally { throw broken } })), { error: broken }) // eslint-disable-line no-unsafe-finally
  for (const stream of [undefined, null, 'text', {}, [delta]]) t.match(await collect(run(() => stream)), { types: [], error: { code: 'internal_error' } })
})

t.test('a run that is interrupted ends gracefully, whether the agent throws, returns or ends by itself', async (t) => {
  for (const leave of ['throw', 'return', 'end'] as const) {
    const controller = new AbortController()
    const reason = new RunInterrupted('user')
    const { types, all, error } = await collect(run(async function * ({ signal }) {
      yield delta
      controller.abort(reason)
      t.equal(signal.reason, reason)
      if (leave === 'throw') throw signal.reason
      if (leave === 'end') yield { type: 'AGENT_END', reason: 'MODEL_STOP' }
    }, controller.signal))
    t.equal(error, undefined)
    t.strictSame(types, ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END', 'AGENT_RESULT', 'AGENT_END'])
    t.match(all.at(-1), { reason: leave === 'end' ? 'MODEL_STOP' : 'INTERRUPTED' })
  }
})

t.test('another abort reason closes what is open and is thrown on', async (t) => {
  const reason = new Error('timeout')
  for (const leave of ['throw', 'return'] as const) {
    const controller = new AbortController()
    const { types, error } = await collect(run(async function * ({ signal }) {
      yield delta
      controller.abort(reason)
      if (leave === 'throw') throw signal.reason
    }, controller.signal))
    t.strictSame(types, ['AGENT_START', 'TEXT_BLOCK_START', 'TEXT_BLOCK_DELTA', 'TEXT_BLOCK_END'])
    t.equal(error, reason)
  }
})

t.test('an agent that ended before it was aborted is complete', async (t) => {
  const controller = new AbortController()
  const { types, error } = await collect(run(async function * () {
    yield { type: 'AGENT_END', reason: 'MODEL_STOP' }
    controller.abort(new Error('timeout'))
  }, controller.signal))
  t.equal(error, undefined)
  t.strictSame(types, ['AGENT_START', 'AGENT_RESULT', 'AGENT_END'])
})

t.test('a signal that had fired before is passed on', async (t) => {
  const reason = new RunInterrupted('system')
  const { types } = await collect(run(async function * ({ signal }) { signal.throwIfAborted() }, AbortSignal.abort(reason)))
  t.strictSame(types, ['AGENT_START', 'AGENT_RESULT', 'AGENT_END'])
})

t.test('an agent that does not settle is abandoned after its grace', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const controller = new AbortController()
  let isClosed = false
  const events = run(() => ({
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: () => {
        isClosed = true
        return Promise.reject(new Error('nobody reads this'))
      }
    })
  }), controller.signal, { graceMs: 100 })
  const all = collect(events)
  await new Promise(setImmediate)
  controller.abort(new RunInterrupted('user'))
  mock.timers.tick(100)
  t.strictSame((await all).types, ['AGENT_START', 'AGENT_RESULT', 'AGENT_END'])
  t.equal(isClosed, true)
})

t.test('leaving the loop aborts the agent and waits for its finally', async (t) => {
  const steps: unknown[] = []
  for await (const event of run(async function * ({ signal }) {
    try {
      yield delta
      yield delta
    } finally {
      await new Promise(setImmediate)
      steps.push(signal.aborted, signal.reason.name)
    }
  })) {
    if (event.type === 'TEXT_BLOCK_DELTA') break
  }
  t.strictSame(steps, [true, 'AbortError'])
})

t.test('return aborts at once, also while the next event is awaited', async (t) => {
  let aborted: unknown
  const events = run(async function * ({ signal }) {
    yield delta
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    aborted = signal.reason
  })
  for (let n = 0; n < 3; n++) await events.next()
  const next = events.next()
  await new Promise(setImmediate)
  await events.return()
  t.match(aborted, { name: 'AbortError', source: 'system' })
  t.strictSame(await next, { done: true, value: undefined })
})

t.test('return before the first event starts nothing, throw throws', async (t) => {
  const never = run(() => t.fail('started'))
  t.strictSame(await never.return(), { done: true, value: undefined })
  t.strictSame(await never.next(), { done: true, value: undefined })
  const error = new Error('mine')
  await t.rejects(run(async function * () { yield delta }).throw(error), error)
})

t.test('known calls and repairs are the normaliser\'s', async (t) => {
  const repairs: string[] = []
  const { types } = await collect(run(async function * () {
    yield { type: 'TOOL_RESULT_END', toolCallId: 'c', state: 'success' }
  }, undefined, { knownCalls: new Set(['c']), onRepair: ({ action, type }) => { repairs.push(`${action} ${type}`) } }))
  t.strictSame(types, ['AGENT_START', 'TOOL_RESULT_START', 'TOOL_RESULT_END', 'AGENT_RESULT', 'AGENT_END'])
  t.strictSame(repairs, ['inserted AGENT_START', 'inserted TOOL_RESULT_START'])
})

t.test('a run can be disposed of', async (t) => {
  let isClosed = false
  const events = run(async function * () { try { yield delta } finally { isClosed = true } })
  await events.next()
  await events[Symbol.asyncDispose]()
  t.equal(isClosed, true)
})

t.test('no listener is left on the run\'s signal', async (t) => {
  const { signal } = new AbortController()
  let listeners = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => { listeners++; add(...args) }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => { listeners--; remove(...args) }
  await collect(run(async function * () { yield delta }, signal))
  await collect(run(async function * () { throw new Error('x') }, signal))
  for await (const event of run(async function * () { yield delta }, signal)) if (event.type === 'AGENT_START') break
  t.equal(listeners, 0)
})
