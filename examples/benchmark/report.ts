import { availableParallelism, cpus, loadavg } from 'node:os'
import { isPinned } from './child.ts'
import { ANCHOR } from './peers.ts'
import { type Measured, type Outcome } from './result.ts'
import { type Spread } from './stats.ts'
import { type Metric, type Size, type Workload } from './workload.ts'

/** What the figures were taken on. They compare only with figures of the same run. */
export interface Machine {
  readonly node: string
  readonly cpu: string
  readonly cores: number
  readonly pinned: boolean
  readonly loadAverage: number
}

/** A workload's whole result, as `--json` prints it. */
export interface Report {
  readonly workload: string
  readonly size: string
  readonly reps: number
  readonly machine: Machine
  readonly outcomes: readonly Outcome[]
}

export function describeMachine (): Machine {
  return {
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    pinned: isPinned,
    loadAverage: loadavg()[0] ?? 0
  }
}

/** The report of a workload, one line a peer and metric. */
export function formatReport (workload: Workload, size: Size, report: Report): string {
  const { machine, outcomes } = report
  const rows = outcomes.flatMap((outcome) => rowsOf(workload, outcome))
  return [
    `${workload.id}: ${workload.title}`,
    `${workload.describe(size)}; ${report.reps} interleaved repetitions, median [min - max]`,
    `node ${machine.node}, ${machine.cpu}, ${machine.cores} cores, ${machine.pinned ? 'server and load on a core each' : 'not pinned'}, load average before ${machine.loadAverage.toFixed(2)}`,
    '',
    ...alignColumns([['peer', 'figure', 'value', 'ratio to raw-limit', ''], ...rows]),
    ''
  ].join('\n')
}

/** The report of `micro`. */
export function formatMicro (figures: ReadonlyArray<{ readonly name: string, readonly nanoseconds: Spread }>, reps: number): string {
  const rows = figures.map(({ name, nanoseconds }) => [name, formatSpread(nanoseconds, 0)])
  return [...alignColumns([['piece', `CPU ns / event, median [min - max] of ${reps}`], ...rows]), ''].join('\n')
}

function rowsOf (workload: Workload, outcome: Outcome): string[][] {
  if (outcome.kind === 'n/a') return [[outcome.peer, 'n/a']]
  if (outcome.kind === 'unfinished') return [[outcome.peer, `did not finish (${outcome.times}x): ${outcome.reason}`]]
  return outcome.metrics.map((measured, i) => {
    const metric = workload.metrics[i]
    return metric === undefined ? [] : rowOf(outcome.peer, metric, measured)
  })
}

function rowOf (peer: string, metric: Metric, measured: Measured): string[] {
  const bars = measured.bars.map(({ of, to, limit, figure, verdict }) => {
    const than = to === undefined ? '' : ` ${to} (${formatSpread(figure, 2)})`
    return `bar ${metric.better === 'higher' ? '>=' : '<='} ${limit}${of === 'ratio' ? 'x' : ''}${than}: ${verdict}`
  })
  return [
    peer,
    metric.label,
    formatSpread(measured.value, metric.digits),
    formatSpread(measured.ratio, 2),
    [...(peer === ANCHOR ? [] : [measured.verdict]), ...bars].join('; ')
  ]
}

function formatSpread ({ median, min, max }: Spread, digits: number): string {
  const [middle, low, high] = [median, min, max].map((value) =>
    value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits }))
  return `${middle} [${low} - ${high}]`
}

/** Pads all but the last cell of each row. A row of fewer cells (a remark) does not widen its last column. */
function alignColumns (rows: readonly string[][]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.slice(0, -1).forEach((cell, i) => { widths[i] = Math.max(widths[i] ?? 0, cell.length) })
  }
  return rows.map((row) => row.map((cell, i) => i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)).join('  ').trimEnd())
}
