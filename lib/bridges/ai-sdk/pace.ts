import { setImmediate as macrotask } from 'node:timers/promises'
import type { LanguageModelMiddleware } from 'ai'
import type { ModelChunk } from './chunk-repair.ts'

/** Chunks that may be on their way through the SDK before any of them arrived. */
const WINDOW = 16

/**
 * Lets a model's stream flow only while somebody waits for it. `streamText` of `ai` 6 reads a model as fast as
 * it speaks and keeps what nobody has taken yet, without limit; a reader that is slow must reach the model's connection.
 */
export class Pace {
  readonly middleware: LanguageModelMiddleware = {
    specificationVersion: 'v3',
    wrapStream: async ({ doStream }) => {
      const result = await doStream()
      return { ...result, stream: this.#through(result.stream) }
    }
  }

  readonly #mend: (chunk: ModelChunk) => ModelChunk | undefined
  /** Chunks let through that no part came of yet. */
  #underway = 0
  #isWanted = false
  #isClosed = false
  /** Counts what was asked for, to tell one wait from the next. */
  #wish = 0
  #wake: () => void = () => {}
  #cancel: () => void = () => {}

  /** @param mend What becomes of a chunk on its way; undefined leaves it out. */
  constructor (mend: (chunk: ModelChunk) => ModelChunk | undefined) {
    this.#mend = mend
  }

  /** Somebody waits for the next part. */
  want (): void {
    this.#isWanted = true
    this.#wish++
    this.#wake()
  }

  /** The part has come. */
  rest (): void {
    this.#isWanted = false
    if (this.#underway > 0) this.#underway--
  }

  /** Nobody will ask again: the model's stream is cancelled. */
  close (): void {
    this.#isClosed = true
    this.#cancel()
    this.#wake()
  }

  #through (source: ReadableStream<ModelChunk>): ReadableStream<ModelChunk> {
    const reader = source.getReader()
    // How a model takes that nobody listens any more is of no use to anybody.
    this.#cancel = () => { reader.cancel().catch(() => {}) }
    if (this.#isClosed) this.#cancel()
    return new ReadableStream({
      pull: async (controller) => {
        await this.#turn()
        this.#underway++
        for (;;) {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          const chunk = this.#mend(value)
          if (chunk !== undefined) return controller.enqueue(chunk)
        }
      },
      cancel: (reason) => reader.cancel(reason)
    }, { highWaterMark: 0 })
  }

  /** Waits for a wish, and while enough is underway for it. */
  async #turn (): Promise<void> {
    while (!this.#isClosed) {
      if (!this.#isWanted) {
        await new Promise<void>((resolve) => { this.#wake = resolve })
      } else if (this.#underway < WINDOW) {
        return
      } else {
        const wish = this.#wish
        await macrotask()
        // Still the same wait after all that could run has run: no part came of those chunks.
        if (this.#isWanted && wish === this.#wish) this.#underway = 0
      }
    }
  }
}
