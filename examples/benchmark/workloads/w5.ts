import { scaled, type Size, type Workload } from '../workload.ts'

const CLIENTS = 500
const EVENTS = 256
const ROUNDS = 8
/** Not scaled: with fewer, it is mostly the compiler that is measured. */
const WARM_UP_ROUNDS = 8
const BOUND_MS = 60_000

/** Everybody comes back at once, as after a restart of a proxy. */
export const w5: Workload = {
  id: 'W5',
  title: 'clients reconnect with Last-Event-ID and replay',
  metrics: [{ key: 'replaysPerCpuSecond', label: 'replays / server CPU s', better: 'higher', digits: 0 }],
  describe: (size) => `${clientsOf(size)} clients at once, ${ROUNDS} times, ${EVENTS} events each`,
  setup: () => ({ heartbeatMs: 60_000, replayEvents: EVENTS }),
  async measure (bench, size) {
    const clients = clientsOf(size)
    const round = {
      request: bench.topicFromStart(),
      total: clients,
      inFlight: clients,
      events: EVENTS,
      until: 'events',
      boundMs: BOUND_MS
    } as const
    const reconnect = async (rounds: number): Promise<void> => {
      for (let i = 0; i < rounds; i++) {
        await bench.requests(round)
        await bench.subscribers(0)
      }
    }
    await reconnect(WARM_UP_ROUNDS)
    const { cpuMicros } = await bench.spent(async () => { await reconnect(ROUNDS) })
    return { replaysPerCpuSecond: clients * ROUNDS / cpuMicros * 1e6 }
  }
}

function clientsOf (size: Size): number {
  return size.count ?? scaled(CLIENTS, size, 20)
}
