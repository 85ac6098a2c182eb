export type { JsonObject, JsonValue } from '../agent/json.ts'
export { ownerText, runKeyText, type Owner, type RunKey } from './run-key.ts'
export {
  ENDED_STATES, isEnded,
  type Barrier, type CommitResult, type CreateResult, type Expected, type ExpectedAtBarrier, type NewRun, type RunEndRecord, type RunField,
  type RunLinks, type RunPatch, type RunRecord, type RunState, type RunStore, type UpdateResult
} from './run-store.ts'
export { type AppendResult, type EventLog, type Fold, type LogEvent, logEvent, type LogEvents, type LogLimits, type LogPage, type SaveFoldResult } from './event-log.ts'
export type {
  AcquireResult, ExpiredQuery, LeaseRefusal, LeaseRequest, Leases, Ownership, RenewResult, TakeoverResult
} from './leases.ts'
export type { Nodes, OrphansQuery } from './nodes.ts'
export type { Presence } from './presence.ts'
export type {
  Answer, Claimant, ClaimResult, FinishResult, InterruptKind, InterruptRecord, InterruptState, InterruptStore, NewInterrupt
} from './interrupts.ts'
export type { EnterResult, GateHolder, GatePlace, GateStore, GateTicket, RenewTicketResult } from './gates.ts'
export type { CompareAndSetResult, Kv, KvKey, SetIfAbsentResult } from './kv.ts'
export type { IndexEntry, ListQuery, RunIndex, RunPage } from './run-index.ts'
export type { SignalChannel, SignalHandler, Signals, Unsubscribe } from './signals.ts'
export type { Store } from './store.ts'
export { StoreCursorError, StoreFullError, StoreUnavailableError } from './errors.ts'
export { memoryStore } from './memory/memory-store.ts'
export type { MemoryStoreOptions } from './memory/options.ts'
export { STORE_OPERATIONS, type OperationKind, type OperationName, type PortName } from './operations.ts'
export { wrapStore, type Around } from './wrap-store.ts'
export { withDeadline } from './deadline.ts'
export { faultyStore } from './faulty/faulty-store.ts'
export { FaultPlan, type FaultOptions, type Hold, type RandomFaults } from './faulty/fault-plan.ts'
