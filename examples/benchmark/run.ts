import { installedVersion, installPeers } from './install.ts'
import { type Options, parseOptions } from './options.ts'
import { type Peer } from './peer.ts'
import { ANCHOR, loadPeer } from './peers.ts'
import { describeMachine, formatMicro, formatReport, type Report } from './report.ts'
import { outcomeOf } from './result.ts'
import { type Trial, tryOnce } from './trial.ts'
import { type Size, type Workload } from './workload.ts'
import { findWorkload } from './workloads.ts'

/** `npm run bench`: see README.md beside this file for the method. */
try {
  await main(parseOptions(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

async function main (options: Options): Promise<void> {
  if (options.workloads.includes('micro')) return runMicro(options)
  const workloads = options.workloads.map(findWorkload)
  const names = new Set([ANCHOR, ...options.peers])
  const peers = await Promise.all(Array.from(names, loadPeer))
  if (peers.some((peer) => peer.packages.length > 0)) installPeers()
  progress(peers.flatMap((peer) => peer.packages).map((name) => `${name} ${installedVersion(name)}`).join(', '))

  const size: Size = { scale: options.scale, ...(options.count === undefined ? {} : { count: options.count }) }
  const reports: Report[] = []
  for (const workload of workloads) {
    const report = await runWorkload(workload, peers, size, options.reps)
    reports.push(report)
    if (!options.json) process.stdout.write(formatReport(workload, size, report) + '\n')
  }
  if (options.json) process.stdout.write(JSON.stringify(reports, null, 2) + '\n')
}

/** Our pieces alone; they are loaded here, so that the rest of the benchmark does without them. */
async function runMicro (options: Options): Promise<void> {
  const { measureMicro } = await import('./micro.ts')
  const figures = await measureMicro(options.reps)
  process.stdout.write(options.json ? JSON.stringify(figures, null, 2) + '\n' : formatMicro(figures, options.reps))
}

/** All repetitions of a workload: each runs every peer once, so that what disturbs the machine disturbs all. */
async function runWorkload (workload: Workload, peers: readonly Peer[], size: Size, reps: number): Promise<Report> {
  const machine = describeMachine()
  const able = peers.filter((peer) => peer.workloads.includes(workload.id))
  const trials = new Map<string, Trial[]>()
  for (let rep = 1; rep <= reps; rep++) {
    for (const peer of able) {
      const trial = await tryOnce(workload, peer, size)
      trials.set(peer.name, [...trials.get(peer.name) ?? [], trial])
      progress(`${workload.id} ${rep}/${reps} ${peer.name}: ${JSON.stringify(trial.kind === 'measured' ? trial.figures : trial.reason)}`)
    }
  }
  return {
    workload: workload.id,
    size: workload.describe(size),
    reps,
    machine,
    outcomes: peers.map((peer) => outcomeOf(workload, peer.name, trials))
  }
}

function progress (line: string): void {
  if (line !== '') process.stderr.write(line + '\n')
}
