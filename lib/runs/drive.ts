import { type Topic } from '../bus/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { Audience } from './audience.ts'
import { Driver } from './driver.ts'
import { type FoldKeeper } from './fold.ts'
import { type EngineParts } from './parts.ts'
import { type RunProtocol } from './protocol.ts'
import { RunLog } from './run-log.ts'
import { ownerField } from './owner-field.ts'
import { type ReplayLimits } from './spec.ts'

/** Makes the driver of a run that this node has the lease of. */
export function drive (parts: EngineParts, protocol: RunProtocol, record: RunRecord, topic: Topic, replay: ReplayLimits, fold?: FoldKeeper): Driver {
  const { store, host } = parts
  const { key, agent } = record
  const logger = parts.logger.child({ runId: key.id, protocol: protocol.name, agent, ...ownerField(key.owner) })
  const audience = new Audience({
    signals: store.signals,
    key,
    topic,
    logger,
    ttlMs: host.leases.leaseMs,
    connect: () => driver.connect({ remote: true })
  })
  const isShared = store.isVolatile !== true && store.isExclusive !== true
  const log = new RunLog({ runs: store.runs, log: store.log, patienceMs: host.patienceMs, isShared, audience }, protocol, record, topic, replay, fold)
  const driver: Driver = new Driver(host, protocol, record, log, logger, audience)
  return driver
}
