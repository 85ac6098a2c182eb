import { parseArgs } from 'node:util'
import { WORKLOAD_IDS } from './peer.ts'
import { PEER_NAMES } from './peers.ts'

export const USAGE = `Usage: npm run bench -- <workload...> [options]

Workloads  ${WORKLOAD_IDS.join(', ')}, all; micro (nanoseconds per event of our own pieces)
Peers      ${PEER_NAMES.join(', ')}

--reps n       interleaved repetitions (9)
--peers a,b    only these; raw-limit always runs, since figures are ratios to it
--scale f      factor for requests, events, connections and seconds (1); for trying out, not for figures
--count n      connections: in flight (W1, W1t), streams (W2), subscribers (W3), idle (W4), clients (W5), stalled (W6)
--json         the result as JSON on stdout; progress is on stderr either way`

export interface Options {
  readonly workloads: readonly string[]
  readonly reps: number
  readonly peers: readonly string[]
  readonly scale: number
  readonly count: number | undefined
  readonly json: boolean
}

/** Reads the command line; throws with a sentence when it makes no sense. */
export function parseOptions (args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      reps: { type: 'string', default: '9' },
      peers: { type: 'string', default: PEER_NAMES.join(',') },
      scale: { type: 'string', default: '1' },
      count: { type: 'string' },
      json: { type: 'boolean', default: false }
    }
  })
  if (positionals.length === 0) throw new Error(USAGE)
  return {
    workloads: positionals.includes('all') ? WORKLOAD_IDS : positionals,
    reps: positive('--reps', values.reps, Number.isInteger),
    peers: values.peers.split(',').filter((name) => name !== ''),
    scale: positive('--scale', values.scale, Number.isFinite),
    count: values.count === undefined ? undefined : positive('--count', values.count, Number.isInteger),
    json: values.json
  }
}

function positive (name: string, text: string, isValid: (value: number) => boolean): number {
  const value = Number(text)
  if (!isValid(value) || value <= 0) throw new Error(`${name} must be a positive number, got ${text}.`)
  return value
}
