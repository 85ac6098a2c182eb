import { type AgentEventOf, type Usage } from '../../lib/agent/index.ts'
import { type AgUiEventOf, type TokenUsage } from './event-schemas.ts'

const EXTRA_COUNTS = ['cacheCreationTokens', 'reasoningTokens', 'toolUsePromptTokens'] as const

type Counts = Record<string, number>

/** Adds up what model calls took, over one AG-UI run (section 13). */
export class UsageMeter {
  readonly #cumulative: Counts = {}
  readonly #models = new Map<string | undefined, { input: number, output: number, cached: number, written: number, reasoning: number }>()

  /** Tokens so far. */
  get total (): { readonly inputTokens: number, readonly outputTokens: number } {
    return { inputTokens: this.#cumulative['inputTokens'] ?? 0, outputTokens: this.#cumulative['outputTokens'] ?? 0 }
  }

  /** Counts a model call's end; returns its CUSTOM `token_usage`, or undefined where the call reports nothing. */
  add (event: AgentEventOf<'MODEL_CALL_END'>): AgUiEventOf<'CUSTOM'> | undefined {
    if (event.usage === undefined) return undefined
    const delta = countsOf(event.usage)
    for (const [name, count] of Object.entries(delta)) this.#cumulative[name] = (this.#cumulative[name] ?? 0) + count
    this.#addModel(event.model, event.usage)
    return {
      type: 'CUSTOM',
      name: 'token_usage',
      value: { delta, cumulative: { ...this.#cumulative }, modelCall: { replyId: event.replyId ?? '' } }
    }
  }

  /** The run's own account, one entry a model; cached and reasoning tokens are parts of the totals. */
  get byModel (): TokenUsage[] {
    return [...this.#models].map(([model, counts]) => ({
      ...model !== undefined && { model },
      inputTokens: counts.input,
      outputTokens: counts.output,
      totalTokens: counts.input + counts.output,
      ...counts.reasoning > 0 && { reasoningTokens: counts.reasoning },
      ...counts.cached > 0 && { cachedInputTokens: counts.cached },
      ...counts.written > 0 && { cacheWriteInputTokens: counts.written }
    }))
  }

  #addModel (model: string | undefined, usage: Usage): void {
    let counts = this.#models.get(model)
    if (counts === undefined) this.#models.set(model, counts = { input: 0, output: 0, cached: 0, written: 0, reasoning: 0 })
    counts.input += whole(usage.inputTokens)
    counts.output += whole(usage.outputTokens)
    counts.cached += whole(usage.cachedTokens)
    counts.written += whole(usage.cacheCreationTokens)
    counts.reasoning += whole(usage.reasoningTokens)
  }
}

/** A call's counts as the reference names them: five always, the others where they are known. */
function countsOf (usage: Usage): Counts {
  const inputTokens = whole(usage.inputTokens)
  const outputTokens = whole(usage.outputTokens)
  const counts: Counts = {
    inputTokens,
    outputTokens,
    cachedTokens: whole(usage.cachedTokens),
    totalTokens: inputTokens + outputTokens,
    time: Number.isFinite(usage.time) ? usage.time ?? 0 : 0
  }
  for (const name of EXTRA_COUNTS) {
    const count = (usage as Record<string, unknown>)[name] // usage is open by key
    if (typeof count === 'number') counts[name] = whole(count)
  }
  return counts
}

/** The official schema refuses fractions and negative counts. */
function whole (count: number | undefined): number {
  return count !== undefined && count > 0 && Number.isFinite(count) ? Math.round(count) : 0
}
