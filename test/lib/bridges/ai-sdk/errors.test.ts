import { APICallError } from 'ai'
import t from 'tap'
import { AgentError } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { lines, run } from './run.ts'
import { finish, scriptedModel, text, type Turn } from './scripted-model.ts'

const SECRET = 'sk-secret at https://inner.test/v1 said: prompt'

function apiError (statusCode: number | undefined, isRetryable: boolean): APICallError {
  return new APICallError({ message: SECRET, url: 'https://inner.test/v1', requestBodyValues: { prompt: SECRET }, ...statusCode !== undefined && { statusCode }, isRetryable, responseBody: SECRET })
}

function fails (error: unknown): Turn {
  return () => Promise.reject(error)
}

t.test('a failing provider is told in constant words; what it said is the cause alone', async (t) => {
  const written: unknown[] = []
  const { error: log } = console
  console.error = (...args: unknown[]) => { written.push(args) }
  t.teardown(() => { console.error = log })
  for (const [thrown, expected] of [
    [apiError(429, true), { code: 'rate_limited', statusCode: 429, retryable: true, publicMessage: 'The model provider is limiting requests; try again later.' }],
    [apiError(503, true), { code: 'model_unavailable', statusCode: 503, retryable: true }],
    [apiError(undefined, true), { code: 'model_unavailable' }],
    [apiError(401, false), { code: 'model_failed', statusCode: 502, retryable: false, publicMessage: 'The model could not answer.' }],
    [new Error(SECRET), { code: 'model_failed' }],
    [SECRET, { code: 'model_failed' }]
  ] as const) {
    for (const maxRetries of [0, 1]) {
      const { model } = scriptedModel(fails(thrown), fails(thrown))
      // A retry waits as long as the provider says.
      if (APICallError.isInstance(thrown)) Object.assign(thrown, { responseHeaders: { 'retry-after-ms': '1' } })
      const { events, error } = await run(aiSdkAgent({ model, settings: { maxRetries } }), 'Hi')
      t.ok(error instanceof AgentError)
      t.match(error, expected)
      t.equal((error as AgentError).cause, thrown)
      t.notMatch((error as AgentError).publicMessage, /secret/)
      t.strictSame(lines(events), ['MODEL_CALL_START 1', 'MODEL_CALL_END 1'])
    }
  }
  t.strictSame(written, [])
})

t.test('a failure in the middle of an answer ends it there: as a part, as a broken stream, or as nothing more', async (t) => {
  for (const [rest, cause] of [
    [[{ type: 'error', error: new Error(SECRET) }, finish('error')], { message: SECRET }],
    [[new Error(SECRET)], { message: SECRET }],
    [[finish('error')], { message: 'The model ended its answer with an error.' }]
  ] as const) {
    const { model } = scriptedModel([...text('t0', 'one').slice(0, 2), ...rest])
    const { events, error } = await run(aiSdkAgent({ model }), 'Hi')
    t.match(error, { code: 'model_failed', publicMessage: 'The model could not answer.' })
    t.match((error as AgentError).cause, cause)
    t.match(lines(events).slice(0, 4), ['MODEL_CALL_START 1', 'TEXT_BLOCK_START 1/t0', 'TEXT_BLOCK_DELTA 1/t0 "one"', 'TEXT_BLOCK_END 1/t0'])
  }
})

t.test('a stream without anything in it is a failure', async (t) => {
  const { model } = scriptedModel([])
  t.match((await run(aiSdkAgent({ model }), 'Hi')).error, { code: 'model_failed', cause: { name: 'AI_NoOutputGeneratedError' } })
})

t.test('an error that a provider or middleware of one\'s own explains is told as it is', async (t) => {
  const thrown = new AgentError({ code: 'budget_spent', message: 'Your budget is spent.', expose: true })
  const { model } = scriptedModel(fails(thrown))
  t.equal((await run(aiSdkAgent({ model }), 'Hi')).error, thrown)
})
