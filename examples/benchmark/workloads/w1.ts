import { type Pace } from '../pace.ts'
import { type WorkloadId } from '../peer.ts'
import { scaled, type Workload } from '../workload.ts'

const EVENTS = 2_000
const IN_FLIGHT = 50
const REQUESTS = 400
/** Not scaled: with fewer, the compiler's own threads are measured, and what runs once a request is not compiled yet. */
const WARM_UP_REQUESTS = 300
const BOUND_MS = 60_000

/** Runs as fast as the agent yields. */
export const w1: Workload = runs('W1', 'one run a request, events as fast as the agent yields them', 'burst')

/** The same runs, one event a macrotask, as tokens come from a network. */
export const w1t: Workload = runs('W1t', 'one run a request, one event a macrotask', 'macrotask')

function runs (id: WorkloadId, title: string, pace: Pace): Workload {
  return {
    id,
    title,
    metrics: [{ key: 'eventsPerCpuSecond', label: 'events / server CPU s', better: 'higher', digits: 0 }],
    describe: (size) => `${scaled(REQUESTS, size, IN_FLIGHT)} requests, ${size.count ?? IN_FLIGHT} in flight, ${EVENTS} events each`,
    setup: () => ({ heartbeatMs: 60_000, replayEvents: 0 }),
    async measure (bench, size) {
      const plan = {
        request: bench.run({ events: EVENTS, pace }),
        inFlight: size.count ?? IN_FLIGHT,
        events: EVENTS,
        until: 'end',
        boundMs: BOUND_MS
      } as const
      await bench.requests({ ...plan, total: WARM_UP_REQUESTS })
      const total = scaled(REQUESTS, size, IN_FLIGHT)
      const { cpuMicros } = await bench.spent(async () => { await bench.requests({ ...plan, total }) })
      return { eventsPerCpuSecond: total * EVENTS / cpuMicros * 1e6 }
    }
  }
}
