import { scaled, Unfinished, type Workload } from '../workload.ts'

const STALLED = 100
const EVENTS = 40_000
const WARM_UP_EVENTS = 400
/** 40 events a millisecond are 5 MB/s: nothing for a reader that reads. */
const BATCH = 40
const BOUND_MS = 30_000

/** Readers that stopped reading beside one that reads on. */
export const w6: Workload = {
  id: 'W6',
  title: 'stalled readers beside a healthy one',
  metrics: [{ key: 'megabytes', label: 'RSS growth MB (peak)', better: 'lower', digits: 1 }],
  describe: (size) => `${size.count ?? STALLED} stalled readers and a healthy one, ${scaled(EVENTS, size, 1_000)} events`,
  setup: () => ({ heartbeatMs: 60_000, replayEvents: 0 }),
  async measure (bench, size) {
    const stalled = size.count ?? STALLED
    const events = scaled(EVENTS, size, 1_000)
    const plan = { batch: BATCH, intervalMs: 1, boundMs: BOUND_MS }
    await bench.open(bench.topic(), 1, { boundMs: BOUND_MS })
    await bench.publish({ ...plan, events: WARM_UP_EVENTS })
    await bench.open(bench.topic(), stalled, { stall: true, boundMs: BOUND_MS })
    await bench.subscribers(stalled + 1)
    const { rssBefore, rssPeak } = await bench.spent(async () => {
      const published = await bench.publish({ ...plan, events })
      const seen = await bench.received(WARM_UP_EVENTS + published, BOUND_MS / 2)
      if (published < events) throw new Unfinished(`${published} of ${events} events in ${BOUND_MS / 1_000} s`)
      bench.requireAll(seen, 1)
    }, { memory: true })
    return { megabytes: (rssPeak - rssBefore) / 1_048_576 }
  }
}
