// Whatever a model says, and however the run ends, the stream is well formed and the next prompt is one that providers take.
import fc from 'fast-check'
import t from 'tap'
import { defineTool, type Msg, RunInterrupted } from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { decide, known, run, user } from './run.ts'
import { call, finish, says, scriptedModel, type Chunk } from './scripted-model.ts'

const word = fc.constantFrom('', 'a', 'b c', '\ud83d', '\ude00', '{', '"')
const id = fc.constantFrom('0', '1', '2')
const toolName = fc.constantFrom('quick', 'words', 'asks', 'asks', 'page', 'fails', 'nope')
const args = fc.constantFrom('', '{}', '{"a":1}', '{"a":', '[]', 'null')
const metadata = fc.option(fc.constant({ x: { sig: '1' } }), { nil: undefined })

const mostly = fc.integer({ min: 0, max: 9 }).map((n) => n > 0)

/** Blocks as providers stream them: opened, said, closed, maybe not closed, side by side. */
const chunk: fc.Arbitrary<Chunk[]> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ id, deltas: fc.array(word, { maxLength: 3 }), isClosed: fc.boolean(), kind: fc.constantFrom('text', 'reasoning'), providerMetadata: metadata }).map(({ id, deltas, isClosed, kind, providerMetadata }) => [
      { type: `${kind}-start`, id } as Chunk,
      ...deltas.map((delta) => ({ type: `${kind}-delta`, id, delta }) as Chunk),
      ...isClosed ? [{ type: `${kind}-end`, id, ...providerMetadata && { providerMetadata } } as Chunk] : []
    ])
  },
  {
    weight: 8,
    arbitrary: fc.record({ n: fc.nat(20), toolName, args, isStreamed: fc.boolean(), isCalled: mostly }).map(({ n, toolName, args, isStreamed, isCalled }) => [
      ...isStreamed ? [{ type: 'tool-input-start', id: `c${n}`, toolName }, { type: 'tool-input-delta', id: `c${n}`, delta: args }, { type: 'tool-input-end', id: `c${n}` }] as Chunk[] : [],
      ...isCalled ? [call(`c${n}`, toolName, args)] : []
    ])
  },
  {
    weight: 2,
    arbitrary: fc.record({ n: fc.nat(9), isError: fc.boolean(), isAnswered: fc.boolean() }).map(({ n, isError, isAnswered }) => [
      { type: 'tool-call', toolCallId: `p${n}`, toolName: 'search', input: '{}', providerExecuted: true, dynamic: true } as Chunk,
      ...isAnswered ? [{ type: 'tool-result', toolCallId: `p${n}`, toolName: 'search', result: { n }, isError, dynamic: true } as Chunk] : []
    ])
  },
  { weight: 1, arbitrary: fc.constant<Chunk[]>([{ type: 'file', mediaType: 'image/png', data: 'AAAA' }]) },
  { weight: 1, arbitrary: fc.constant<Chunk[]>([{ type: 'source', sourceType: 'url', id: 's', url: 'https://x.test/' }]) },
  { weight: 1, arbitrary: fc.constant<Chunk[]>([{ type: 'error', error: new Error('broken') }]) }
)

const turn = fc.record({
  chunks: fc.array(chunk, { maxLength: 6 }),
  end: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(finish(), finish('tool-calls')) }, { weight: 2, arbitrary: fc.constantFrom<Chunk | Error | undefined>(finish('length'), finish('error'), new Error('cut'), undefined) })
}).map(({ chunks, end }) => [...chunks.flat(), ...end === undefined ? [] : [end]])

const tools = [
  defineTool({ name: 'quick', execute: () => 'done' }),
  defineTool({ name: 'words', async * execute () { yield 'one '; yield { type: 'CUSTOM', name: 'tool_progress', value: {} }; return 'two' } }),
  defineTool({ name: 'asks', needsApproval: true, execute: () => 'approved' }),
  defineTool({ name: 'fails', execute: () => { throw new Error('no') } })
]
const page = { mode: 'merge' as const, definitions: [{ name: 'page' }] }

t.test('random scripts give well-formed streams, and what a client keeps of them can be gone on from', async (t) => {
  const seen = { failed: 0, paused: 0, interrupted: 0, complete: 0 }
  await fc.assert(fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 3 }), fc.option(fc.nat(30)), fc.boolean(), async (turns, stopAt, approved) => {
    const { model } = scriptedModel(...turns, says('end'))
    const agent = aiSdkAgent({ model, tools, maxSteps: 4, settings: { maxRetries: 0 } })
    const controller = new AbortController()
    let count = 0
    // run() fails when the stream is not well formed.
    const { pending, message } = await run(agent, {
      messages: [user('Go')],
      tools: page,
      signal: controller.signal,
      onEvent: () => { if (count++ === stopAt) controller.abort(new RunInterrupted('user')) }
    })
    seen[message === undefined ? 'failed' : pending.length > 0 ? 'paused' : controller.signal.aborted ? 'interrupted' : 'complete']++
    if (message === undefined) return
    const kept: Msg[] = [user('Go'), message]
    const { model: later, prompts } = scriptedModel(says('fine'))
    const next = await run(aiSdkAgent({ model: later, tools }), pending.length === 0
      ? { messages: [...kept, user('And?')], tools: page }
      : {
          messages: kept,
          tools: page,
          resume: decide(pending, ...pending.map((item) => item.kind === 'confirm'
            ? { kind: 'confirm', toolCallId: item.toolCall.id, approved }
            : { kind: 'result', toolCallId: item.kind === 'external' ? item.toolCall.id : '', output: 'ok' })),
          knownCalls: known(pending)
        })
    // The SDK itself refuses a prompt in which a call lacks its result.
    if (next.error instanceof Error) throw next.error
    if (prompts.length !== 1) throw new Error(`${prompts.length} prompts`)
  }), { numRuns: Number(process.env.PROPERTY_RUNS ?? 120) })
  for (const [outcome, count] of Object.entries(seen)) t.ok(count > 0, `${count} ${outcome}`)
})
