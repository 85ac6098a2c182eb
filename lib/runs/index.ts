export type { Census } from './census.ts'
export { untilStored } from './catch-up.ts'
export { RunEngine, type EngineOptions, type StopOptions } from './engine.ts'
export type { Restart } from './restarter.ts'
export type { Run } from './run.ts'
export type {
  DisconnectPolicy, ExecutionSpec, Idempotency, InterruptProblem, ReplayLimits, ResumeClaim, ResumeResult, ResumeSpec, RunSpec, StartResult
} from './spec.ts'
export type {
  Emit, EmitOptions, ExecutionEnd, ExecutionInfo, InterruptedBy, Projection, RunFailure, RunFold, RunProtocol, Snapshot
} from './protocol.ts'
export type { Connection, ConnectOptions } from './disconnect.ts'
export type { OwnerLimits } from './owner-limits.ts'
export type { RunLogger } from './logger.ts'
export type { EngineObserver, ObservedEnd, RunObserver, StartingRun } from './observer.ts'
export { checkNamed } from './interrupts.ts'
export { OUTCOME_UNKNOWN, ProtocolTakenError, RunLimitError, StorageLimitError } from './errors.ts'
export { type CloseOptions } from './shutdown.ts'
