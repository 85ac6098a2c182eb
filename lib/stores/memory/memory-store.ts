import { LocalSignals } from '../local-signals.ts'
import type { Store } from '../store.ts'
import { MemoryEventLog } from './event-log.ts'
import { MemoryGates } from './gates.ts'
import { MemoryInterrupts } from './interrupts.ts'
import { MemoryKv } from './kv.ts'
import { MemoryLeases } from './leases.ts'
import { MemoryNodes } from './nodes.ts'
import { type MemoryStoreOptions, resolveMemoryOptions } from './options.ts'
import { MemoryPresence } from './presence.ts'
import { MemoryRunIndex } from './run-index.ts'
import { MemoryRuns } from './runs.ts'
import { MemoryState } from './state.ts'

/**
 * A store in this process's memory: the default, for tests, a demo, one process. Everything has a limit with a policy
 * (`MemoryStoreOptions`); what has run out is unreadable at once and swept by an unref'ed timer that runs while there is anything
 * to sweep. Events are kept by reference, everything else as frozen copies.
 *
 * @throws AGT_ERR_OPTION_INVALID for an option that can not be used
 */
export function memoryStore (options?: MemoryStoreOptions): Store {
  const state = new MemoryState(resolveMemoryOptions(options))
  const interrupts = new MemoryInterrupts(state)
  const signals = new LocalSignals()
  return {
    runs: new MemoryRuns(state, interrupts),
    log: new MemoryEventLog(state),
    leases: new MemoryLeases(state),
    nodes: new MemoryNodes(state),
    presence: new MemoryPresence(state),
    interrupts,
    gates: new MemoryGates(state),
    kv: new MemoryKv(state),
    index: new MemoryRunIndex(state),
    signals,
    isVolatile: true,
    close: async () => {
      signals.close()
      state.close()
    }
  }
}
