import { type Seen } from '../messages.ts'
import { scaled, type Size, type Workload } from '../workload.ts'

const STREAMS = 1_000
const EVENTS = 200
const WARM_UP_EVENTS = 20
const BOUND_MS = 60_000

/** Many slow streams at once, which is what a server of agents mostly has. */
export const w2: Workload = {
  id: 'W2',
  title: 'streams of 20 events a second',
  metrics: [
    { key: 'cpuMicrosPerEvent', label: 'server CPU us / event', better: 'lower', digits: 2 },
    { key: 'p50Micros', label: 'latency p50 us', better: 'lower', digits: 0 },
    { key: 'p99Micros', label: 'latency p99 us', better: 'lower', digits: 0 }
  ],
  describe: (size) => `${streamsOf(size)} streams x ${eventsOf(size)} events`,
  setup: () => ({ heartbeatMs: 60_000, replayEvents: 0 }),
  async measure (bench, size) {
    const streams = streamsOf(size)
    const events = eventsOf(size)
    const runs = { total: streams, inFlight: streams, until: 'end', boundMs: BOUND_MS } as const
    await bench.requests({ ...runs, events: WARM_UP_EVENTS, request: bench.run({ events: WARM_UP_EVENTS, pace: 'interval' }) })
    let seen: Seen | undefined
    const { cpuMicros } = await bench.spent(async () => {
      seen = await bench.requests({ ...runs, events, request: bench.run({ events, pace: 'interval' }) })
    })
    return {
      cpuMicrosPerEvent: cpuMicros / (streams * events),
      p50Micros: seen?.latency?.p50 ?? NaN,
      p99Micros: seen?.latency?.p99 ?? NaN
    }
  }
}

function streamsOf (size: Size): number {
  return size.count ?? scaled(STREAMS, size, 10)
}

function eventsOf (size: Size): number {
  return scaled(EVENTS, size, 40)
}
