import { streamText, type ModelMessage, type TextStreamPart, type ToolSet, wrapLanguageModel } from 'ai'
import { ChunkRepair } from './chunk-repair.ts'
import type { AiSdkModel } from './options.ts'
import { Pace } from './pace.ts'

type StreamTextOptions = Parameters<typeof streamText<ToolSet>>[0]

/** One request to a model. */
export type ModelRequest = Omit<StreamTextOptions, 'model' | 'messages' | 'prompt' | 'abortSignal' | 'stopWhen' | 'onError'> & {
  readonly model: AiSdkModel
  readonly messages: ModelMessage[]
  /** Ids of the conversation's calls; those of the answer are added. */
  readonly callIds: Set<string>
}

/** The model's part of the conversation after a call. */
export type ModelReply = Extract<ModelMessage, { readonly role: 'assistant' }>

/**
 * Calls a model once and yields the parts of its stream as they are asked for; returns its messages, those of tools left out.
 * An abort is thrown on at once as the signal's reason, whether or not the provider heeds it.
 */
export async function * callModel (request: ModelRequest, signal: AbortSignal): AsyncGenerator<TextStreamPart<ToolSet>, ModelReply[], undefined> {
  signal.throwIfAborted()
  const { model, callIds, ...rest } = request
  const repair = new ChunkRepair(callIds)
  const pace = new Pace((chunk) => repair.mend(chunk))
  const controller = new AbortController()
  const result = streamText({
    ...rest,
    model: wrapLanguageModel({ model, middleware: pace.middleware }),
    abortSignal: controller.signal,
    // Failures arrive as parts; by default they are written to the console, with what the provider said.
    onError: () => {}
  })
  const reader = result.fullStream.getReader()
  let giveUp: (reason: unknown) => void = () => {}
  const onAbort = (): void => {
    controller.abort(abortError())
    giveUp(signal.reason)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  let isOver = false
  try {
    for (;;) {
      // It may have fired while the last part was out with the reader.
      signal.throwIfAborted()
      pace.want()
      const { done, value } = await new Promise<Awaited<ReturnType<typeof reader.read>>>((resolve, reject) => {
        giveUp = reject
        reader.read().then(resolve, reject)
      })
      pace.rest()
      if (done) break
      yield value
    }
    isOver = true
  } finally {
    signal.removeEventListener('abort', onAbort)
    if (!isOver) {
      controller.abort(abortError())
      // What is left of a stream that nobody reads has no failure to tell.
      reader.cancel().catch(() => {})
    }
    pace.close()
  }
  const { messages } = await result.response
  return messages.filter((message) => message.role === 'assistant')
}

/** `ai` takes an abort reason of any other name for a failure, which then nobody catches (agent-events 9.4). */
function abortError (): DOMException {
  return new DOMException('The run was stopped.', 'AbortError')
}
