import { setTimeout as sleep } from 'node:timers/promises'
import { scaled, type Size, type Workload } from '../workload.ts'

const CONNECTIONS = 10_000
const WARM_UP_CONNECTIONS = 50
/** Descriptors a process needs for itself. */
const SPARE_DESCRIPTORS = 200
const HEARTBEAT_MS = 2_000
const HEARTBEATS = 2
const BOUND_MS = 60_000

/** Connections that only wait. */
export const w4: Workload = {
  id: 'W4',
  title: 'idle connections with heartbeats',
  metrics: [{ key: 'kilobytesPerConnection', label: 'RSS KB / connection', better: 'lower', digits: 1 }],
  describe: (size) => `${connectionsOf(size)} connections, a heartbeat every ${HEARTBEAT_MS / 1_000} s, measured after ${HEARTBEATS}`,
  setup: () => ({ heartbeatMs: HEARTBEAT_MS, replayEvents: 0 }),
  async measure (bench, size) {
    const connections = connectionsOf(size)
    // What the first connections cost once (code, pools) is not a connection's price.
    await bench.open(bench.topic(), Math.min(WARM_UP_CONNECTIONS, connections), { boundMs: BOUND_MS })
    await sleep(HEARTBEAT_MS)
    await bench.closeAll()
    const { rssBefore, rssAfter } = await bench.spent(async () => {
      await bench.open(bench.topic(), connections, { boundMs: BOUND_MS })
      await bench.subscribers(connections)
      await sleep(HEARTBEAT_MS * HEARTBEATS)
    }, { memory: true })
    return { kilobytesPerConnection: (rssAfter - rssBefore) / 1_024 / connections }
  }
}

function connectionsOf (size: Size): number {
  return Math.min(size.count ?? scaled(CONNECTIONS, size, 200), descriptors() - SPARE_DESCRIPTORS)
}

/** Descriptors a process may open: node raises its soft limit to the hard one by itself. */
function descriptors (): number {
  const report = process.report.getReport() as unknown as { readonly userLimits: { readonly open_files: { readonly soft: number | 'unlimited' } } }
  const { soft } = report.userLimits.open_files
  return soft === 'unlimited' ? Infinity : soft
}
