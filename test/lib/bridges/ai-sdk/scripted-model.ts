// A language model that says what a test wrote down, chunk by chunk, only when it is asked for more.
import { type LanguageModelV3CallOptions, type LanguageModelV3StreamPart, type LanguageModelV3Usage } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'

export type Chunk = LanguageModelV3StreamPart

/** What the model says to one request: chunks, or a function of the request. An error in it breaks the stream. */
export type Turn = readonly (Chunk | Error)[] | ((options: LanguageModelV3CallOptions) => AsyncIterable<Chunk> | Iterable<Chunk | Error> | Promise<Iterable<Chunk>>)

export interface ScriptedModel {
  readonly model: MockLanguageModelV3
  /** Prompts so far. */
  readonly prompts: LanguageModelV3CallOptions['prompt'][]
  /** Chunks that were taken, over all requests. */
  readonly taken: () => number
  /** Requests whose stream was cancelled. */
  readonly cancelled: () => number
}

/** Answers the first request with the first turn, and so on; a request too many fails. */
export function scriptedModel (...turns: readonly Turn[]): ScriptedModel {
  const prompts: LanguageModelV3CallOptions['prompt'][] = []
  let taken = 0
  let cancelled = 0
  const model = new MockLanguageModelV3({
    modelId: 'scripted',
    doStream: async (options) => {
      // A copy: the SDK goes on building on its own.
      prompts.push(structuredClone(options.prompt))
      const turn = turns[prompts.length - 1]
      if (turn === undefined) throw new Error('The script has no such turn.')
      const chunks = typeof turn === 'function' ? await turn(options) : turn
      const iterator = Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]()
      return {
        stream: new ReadableStream<Chunk>({
          pull: async (controller) => {
            const { done, value } = await iterator.next() as IteratorResult<Chunk | Error, undefined>
            if (done === true) return controller.close()
            if (value instanceof Error) return controller.error(value)
            taken++
            controller.enqueue(value)
          },
          cancel: async () => {
            cancelled++
            await iterator.return?.()
          }
        }, { highWaterMark: 0 })
      }
    }
  })
  return { model, prompts, taken: () => taken, cancelled: () => cancelled }
}

export function usage (input?: number, output?: number, more: { cacheRead?: number, cacheWrite?: number, reasoning?: number } = {}): LanguageModelV3Usage {
  return {
    inputTokens: { total: input, noCache: undefined, cacheRead: more.cacheRead, cacheWrite: more.cacheWrite },
    outputTokens: { total: output, text: undefined, reasoning: more.reasoning }
  }
}

type Unified = Extract<Chunk, { type: 'finish' }>['finishReason']['unified']

export function finish (unified: Unified = 'stop', tokens = usage()): Chunk {
  return { type: 'finish', finishReason: { unified, raw: undefined }, usage: tokens }
}

export function text (id: string, ...deltas: readonly string[]): Chunk[] {
  return [{ type: 'text-start', id }, ...deltas.map((delta): Chunk => ({ type: 'text-delta', id, delta })), { type: 'text-end', id }]
}

/** A turn that says one text. */
export function says (...deltas: readonly string[]): Chunk[] {
  return [...text('t0', ...deltas), finish()]
}

export function call (toolCallId: string, toolName: string, input: unknown): Chunk {
  return { type: 'tool-call', toolCallId, toolName, input: typeof input === 'string' ? input : JSON.stringify(input) }
}

/** A turn that calls tools. */
export function calls (...chunks: readonly Chunk[]): Chunk[] {
  return [...chunks, finish('tool-calls')]
}
