import { type Bar, BARS } from './bars.ts'
import { type Spread, sideOf, spreadOf } from './stats.ts'
import { type Trial } from './trial.ts'
import { type Metric, type Workload } from './workload.ts'

/** Below so many repetitions a range says nothing, and no verdict is given. */
const MIN_REPS = 5

export type Verdict = 'better' | 'worse' | 'no measured difference' | 'too few repetitions'

/** A bar and what came of it. */
export interface Judged extends Omit<Bar, 'workload' | 'peer' | 'metric'> {
  readonly verdict: 'met' | 'missed' | 'no measured difference' | 'too few repetitions'
}

/** A metric of one peer over all repetitions. */
export interface Measured {
  readonly metric: string
  readonly value: Spread
  /** To the anchor of the same repetition. */
  readonly ratio: Spread
  readonly verdict: Verdict
  readonly bars: readonly Judged[]
}

/** How a peer did in a workload. */
export type Outcome =
  | { readonly peer: string, readonly kind: 'measured', readonly metrics: readonly Measured[] }
  | { readonly peer: string, readonly kind: 'unfinished', readonly times: number, readonly reason: string }
  | { readonly peer: string, readonly kind: 'n/a' }

/** A peer's outcome from its trials and the anchor's, both in the order of the repetitions. No trials: n/a. */
export function outcomeOf (workload: Workload, peer: string, trials: readonly Trial[], anchor: readonly Trial[]): Outcome {
  if (trials.length === 0) return { peer, kind: 'n/a' }
  const unfinished = trials.filter((trial) => trial.kind === 'unfinished')
  const [first] = unfinished
  if (first !== undefined) return { peer, kind: 'unfinished', times: unfinished.length, reason: first.reason }
  return { peer, kind: 'measured', metrics: workload.metrics.map((metric) => measuredOf(workload, metric, peer, trials, anchor)) }
}

function measuredOf (workload: Workload, metric: Metric, peer: string, trials: readonly Trial[], anchor: readonly Trial[]): Measured {
  const values = figuresOf(trials, metric.key)
  const anchors = figuresOf(anchor, metric.key)
  const value = spreadOf(values)
  const ratio = spreadOf(values.map((figure, i) => figure / (anchors[i] ?? NaN)))
  const bars = BARS
    .filter((bar) => bar.workload === workload.id && bar.peer === peer && bar.metric === metric.key)
    .map(({ of, limit }): Judged => ({ of, limit, verdict: barVerdict(metric, of === 'ratio' ? ratio : value, limit, values.length) }))
  return { metric: metric.key, value, ratio, verdict: verdictOf(metric, ratio, values.length), bars }
}

function figuresOf (trials: readonly Trial[], key: string): readonly number[] {
  return trials.map((trial) => (trial.kind === 'measured' ? trial.figures[key] : undefined) ?? NaN)
}

function verdictOf (metric: Metric, ratio: Spread, reps: number): Verdict {
  if (reps < MIN_REPS) return 'too few repetitions'
  const side = sideOf(ratio, 1)
  if (side === 'straddles') return 'no measured difference'
  return (side === 'above') === (metric.better === 'higher') ? 'better' : 'worse'
}

function barVerdict (metric: Metric, spread: Spread, limit: number, reps: number): Judged['verdict'] {
  if (reps < MIN_REPS) return 'too few repetitions'
  const side = sideOf(spread, limit)
  if (side === 'straddles') return 'no measured difference'
  return (side === 'above') === (metric.better === 'higher') ? 'met' : 'missed'
}
