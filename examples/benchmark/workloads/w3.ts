import { type Seen } from '../messages.ts'
import { scaled, type Size, type Workload } from '../workload.ts'

const SUBSCRIBERS = 1_000
const EVENTS = 200
const WARM_UP_EVENTS = 40
/** Time a subscriber gets of the interval: slow enough that no peer falls behind and merges events that it would not merge otherwise. */
const MICROS_PER_SUBSCRIBER = 40
const BOUND_MS = 60_000

/** One event to many. */
export const w3: Workload = {
  id: 'W3',
  title: 'one topic, many subscribers',
  metrics: [
    { key: 'deliveriesPerCpuSecond', label: 'deliveries / server CPU s', better: 'higher', digits: 0 },
    { key: 'p99Micros', label: 'latency p99 us', better: 'lower', digits: 0 }
  ],
  describe: (size) => `${subscribersOf(size)} subscribers, ${scaled(EVENTS, size, 20)} events, one every ${intervalOf(size)} ms`,
  setup: () => ({ heartbeatMs: 60_000, replayEvents: 0 }),
  async measure (bench, size) {
    const subscribers = subscribersOf(size)
    const events = scaled(EVENTS, size, 20)
    await bench.open(bench.topic(), subscribers, { boundMs: BOUND_MS })
    await bench.subscribers(subscribers)
    const plan = { batch: 1, intervalMs: intervalOf(size), boundMs: BOUND_MS }
    await bench.publish({ ...plan, events: WARM_UP_EVENTS })
    await bench.received(WARM_UP_EVENTS, BOUND_MS)
    let seen: Seen | undefined
    const { cpuMicros } = await bench.spent(async () => {
      await bench.publish({ ...plan, events })
      seen = await bench.received(WARM_UP_EVENTS + events, BOUND_MS)
    })
    bench.requireAll(seen, subscribers)
    return {
      deliveriesPerCpuSecond: subscribers * events / cpuMicros * 1e6,
      p99Micros: seen?.latency?.p99 ?? NaN
    }
  }
}

function subscribersOf (size: Size): number {
  return size.count ?? scaled(SUBSCRIBERS, size, 10)
}

function intervalOf (size: Size): number {
  return Math.max(5, subscribersOf(size) * MICROS_PER_SUBSCRIBER / 1_000)
}
