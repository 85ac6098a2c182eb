import { type Bar, BARS } from './bars.ts'
import { ANCHOR } from './peers.ts'
import { type Spread, sideOf, spreadOf } from './stats.ts'
import { type Trial } from './trial.ts'
import { type Metric, type Workload } from './workload.ts'

/** Below so many repetitions a range says nothing, and no verdict is given. */
const MIN_REPS = 5

export type Verdict = 'better' | 'worse' | 'no measured difference' | 'too few repetitions'

/** A bar and what came of it. */
export interface Judged extends Omit<Bar, 'workload' | 'peer' | 'metric'> {
  /** What was held against the limit. */
  readonly figure: Spread
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

/** What each peer did in each repetition, by its name. */
export type Trials = ReadonlyMap<string, readonly Trial[]>

/** How a peer did in a workload. */
export type Outcome =
  | { readonly peer: string, readonly kind: 'measured', readonly metrics: readonly Measured[] }
  | { readonly peer: string, readonly kind: 'unfinished', readonly times: number, readonly reason: string }
  | { readonly peer: string, readonly kind: 'n/a' }

/** A peer's outcome from all peers' trials, those of each in the order of the repetitions. No trials: n/a. */
export function outcomeOf (workload: Workload, peer: string, all: Trials): Outcome {
  const trials = all.get(peer) ?? []
  if (trials.length === 0) return { peer, kind: 'n/a' }
  const unfinished = trials.filter((trial) => trial.kind === 'unfinished')
  const [first] = unfinished
  if (first !== undefined) return { peer, kind: 'unfinished', times: unfinished.length, reason: first.reason }
  return { peer, kind: 'measured', metrics: workload.metrics.map((metric) => measuredOf(workload, metric, peer, all)) }
}

function measuredOf (workload: Workload, metric: Metric, peer: string, all: Trials): Measured {
  const value = spreadOf(figuresOf(all.get(peer), metric.key))
  const ratio = ratioTo(ANCHOR, metric, peer, all)
  const reps = all.get(peer)?.length ?? 0
  const bars = BARS
    .filter((bar) => bar.workload === workload.id && bar.peer === peer && bar.metric === metric.key && (bar.to === undefined || all.has(bar.to)))
    .map(({ of, to, limit }): Judged => {
      const figure = of === 'value' ? value : to === undefined ? ratio : ratioTo(to, metric, peer, all)
      return { of, ...to !== undefined && { to }, limit, figure, verdict: barVerdict(metric, figure, limit, reps) }
    })
  return { metric: metric.key, value, ratio, verdict: verdictOf(metric, ratio, reps), bars }
}

/** A peer's figures to those of another one in the same repetitions. */
function ratioTo (other: string, metric: Metric, peer: string, all: Trials): Spread {
  const others = figuresOf(all.get(other), metric.key)
  return spreadOf(figuresOf(all.get(peer), metric.key).map((figure, i) => figure / (others[i] ?? NaN)))
}

function figuresOf (trials: readonly Trial[] | undefined, key: string): readonly number[] {
  return (trials ?? []).map((trial) => (trial.kind === 'measured' ? trial.figures[key] : undefined) ?? NaN)
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
