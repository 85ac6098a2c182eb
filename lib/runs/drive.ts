import { type Topic } from '../bus/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { Driver } from './driver.ts'
import { type FoldKeeper } from './fold.ts'
import { type EngineParts } from './parts.ts'
import { type RunProtocol } from './protocol.ts'
import { RunLog } from './run-log.ts'
import { ownerField } from './owner-field.ts'
import { type ReplayLimits } from './spec.ts'

/** Makes the driver of a run that this node has the lease of. */
export function drive (parts: EngineParts, protocol: RunProtocol, record: RunRecord, topic: Topic, replay: ReplayLimits, fold?: FoldKeeper): Driver {
  const { store, host, logger } = parts
  const isShared = store.isVolatile !== true && store.isExclusive !== true
  const log = new RunLog({ runs: store.runs, log: store.log, patienceMs: host.patienceMs, isShared }, protocol, record, topic, replay, fold)
  return new Driver(host, protocol, record, log, logger.child({ runId: record.key.id, protocol: protocol.name, agent: record.agent, ...ownerField(record.key.owner) }))
}
