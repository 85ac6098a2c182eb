import type { LanguageModelMiddleware } from 'ai'
import { newId } from '../../agent/index.ts'

type ModelStream = Awaited<ReturnType<Parameters<NonNullable<LanguageModelMiddleware['wrapStream']>>[0]['doStream']>>['stream']

/** A piece of a model's stream, before the SDK has seen it. */
export type ModelChunk = ModelStream extends ReadableStream<infer Chunk> ? Chunk : never

/**
 * Mends what providers say before the SDK sees it. Call ids become unique in the conversation: servers of small models
 * count them from 0 in each answer, or leave them blank, and approvals, results and pages find a call by its id alone.
 */
export class ChunkRepair {
  readonly #taken: Set<string>
  /** The provider's ids of this answer, and ours. */
  readonly #ids = new Map<string, string>()
  /** Ids whose call is complete: the next call may bring the same one. */
  readonly #complete = new Set<string>()

  /** @param taken Ids of the conversation so far; those of this answer are added. */
  constructor (taken: Set<string>) {
    this.#taken = taken
  }

  /** The chunk as it goes on; undefined for one that is left out. */
  mend (chunk: ModelChunk): ModelChunk | undefined {
    switch (chunk.type) {
      case 'tool-input-start': return { ...chunk, id: this.#begin(chunk.id) }
      case 'tool-input-delta': case 'tool-input-end': return { ...chunk, id: this.#of(chunk.id) }
      case 'tool-call': {
        const id = this.#ids.has(chunk.toolCallId) && !this.#complete.has(chunk.toolCallId) ? this.#of(chunk.toolCallId) : this.#begin(chunk.toolCallId)
        this.#complete.add(chunk.toolCallId)
        return { ...chunk, toolCallId: id }
      }
      case 'tool-approval-request': return { ...chunk, toolCallId: this.#of(chunk.toolCallId) }
      case 'tool-result':
        // `ai` 6 takes a provider's preview of a result for the result itself, and would tell two.
        return chunk.preliminary === true ? undefined : { ...chunk, toolCallId: this.#of(chunk.toolCallId) }
      default: return chunk
    }
  }

  #begin (given: string): string {
    this.#complete.delete(given)
    const id = given === '' || this.#taken.has(given) ? newId() : given
    this.#taken.add(id)
    this.#ids.set(given, id)
    return id
  }

  /** Ours, or the provider's own for a call of an earlier answer. */
  #of (given: string): string {
    return this.#ids.get(given) ?? given
  }
}
