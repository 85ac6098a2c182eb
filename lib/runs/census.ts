import { ownerText } from '../stores/index.ts'
import { type Driver } from './driver.ts'

/** The runs that a node has in hand, counted. */
export interface Census {
  /** In their session's queue. */
  readonly pending: number
  readonly running: number
  /** For an answer, with this node's memory of them. */
  readonly waiting: number
  /** Runs in the queue of the session in which most of them wait. */
  readonly longestQueue: number
  /** Bytes of the logs in memory, of all runs at hand. */
  readonly logBytes: number
}

/** Counts runs; for a look now and then, not for each event. */
export function countRuns (drivers: Iterable<Driver>): Omit<Census, 'logBytes'> {
  const queues = new Map<string, number>()
  let running = 0
  let waiting = 0
  for (const { isActive, record } of drivers) {
    if (!isActive) waiting++
    else if (record.state === 'running') running++
    else {
      const session = ownerText(record.key.owner) + record.session
      queues.set(session, (queues.get(session) ?? 0) + 1)
    }
  }
  const lengths = [...queues.values()]
  return { pending: lengths.reduce((sum, length) => sum + length, 0), running, waiting, longestQueue: Math.max(0, ...lengths) }
}
