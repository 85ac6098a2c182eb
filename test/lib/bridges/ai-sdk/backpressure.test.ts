import t from 'tap'
import { createRuntimeContext } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { user } from './run.ts'
import { finish, scriptedModel, type Chunk } from './scripted-model.ts'

const CHUNKS = 1_000

function * lively (): Generator<Chunk> {
  yield { type: 'text-start', id: 't0' }
  // Every other chunk comes to nothing on its way: credit must not be lost on those.
  for (let n = 0; n < CHUNKS; n++) {
    yield { type: 'raw', rawValue: n }
    yield { type: 'text-delta', id: 't0', delta: String(n % 10) }
  }
  yield { type: 'text-end', id: 't0' }
  yield finish()
}

t.test('a model speaks only as quickly as its reader listens, and is never far ahead of it', async (t) => {
  const script = scriptedModel(lively)
  const stream = aiSdkAgent({ model: script.model }).stream({ messages: [user('Go')], history: 'replace' }, createRuntimeContext({ sessionId: 's' }))
  let told = 0
  let ahead = 0
  let text = ''
  for await (const event of stream) {
    if (event.type !== 'TEXT_BLOCK_DELTA') continue
    text += event.delta
    // A reader that takes its time: whatever could run in the meantime has run.
    if (++told % 50 === 0) await new Promise((resolve) => { setImmediate(resolve) })
    ahead = Math.max(ahead, script.taken() - 2 * told)
  }
  t.equal(text, Array.from({ length: CHUNKS }, (_, n) => n % 10).join(''))
  t.ok(ahead <= 64, `${ahead} chunks ahead`)
})

t.test('nothing is asked for before somebody listens', async (t) => {
  const script = scriptedModel(lively)
  const stream = aiSdkAgent({ model: script.model }).stream({ messages: [user('Go')], history: 'replace' }, createRuntimeContext({ sessionId: 's' }))
  const iterator = stream[Symbol.asyncIterator]()
  t.match(await iterator.next(), { value: { type: 'MODEL_CALL_START' } })
  t.equal(script.prompts.length, 0)
  t.match(await iterator.next(), { value: { type: 'TEXT_BLOCK_START' } })
  await new Promise((resolve) => { setImmediate(resolve) })
  const taken = script.taken()
  t.ok(taken <= 64, `${taken} chunks`)
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(script.taken(), taken)
  await iterator.return?.()
})
