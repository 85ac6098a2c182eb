import { type Usage } from './usage.ts'

const counts = ['inputTokens', 'outputTokens', 'cachedTokens', 'cacheCreationTokens', 'reasoningTokens', 'totalTokens', 'time'] as const

/**
 * Adds up tokens, each once: what a source reported per model call counts, its totals only when it reported no call.
 */
export class UsageMeter {
  readonly #calls = new Map<string | undefined, Usage>()
  readonly #totals = new Map<string | undefined, Usage>()

  /** Adds a model call of the root (`undefined`) or of a child. */
  add (source: string | undefined, usage: Usage): void {
    this.#calls.set(source, sum(this.#calls.get(source), usage))
  }

  /** Notes what a source says it used altogether; the last word counts. */
  total (source: string | undefined, usage: Usage): void {
    this.#totals.set(source, usage)
  }

  /** Usage of one source. */
  of (source: string | undefined): Usage | undefined {
    return this.#calls.get(source) ?? this.#totals.get(source)
  }

  /** Usage of the root and all children; undefined when nobody reported any. */
  get all (): Usage | undefined {
    let all: Usage | undefined
    for (const source of new Set([...this.#calls.keys(), ...this.#totals.keys()])) {
      const usage = this.of(source)
      if (usage !== undefined) all = sum(all, usage)
    }
    return all
  }
}

function sum (left: Usage | undefined, right: Usage): Usage {
  const result: Usage = { inputTokens: 0, outputTokens: 0 }
  const withTotals = [left, right].map((usage) => usage && { ...usage, totalTokens: usage.totalTokens ?? usage.inputTokens + usage.outputTokens })
  for (const key of counts) {
    for (const usage of withTotals) {
      const value = usage?.[key]
      if (value !== undefined) result[key] = (result[key] ?? 0) + value
    }
  }
  return result
}
