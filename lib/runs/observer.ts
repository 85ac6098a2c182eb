import { type OperationName, type RunRecord } from '../stores/index.ts'
import { type ExecutionEnd } from './protocol.ts'

/** What is known of an execution that is about to begin, before its run is written. */
export interface StartingRun {
  /** `RunKey.id`: for logs and spans, never for a metric's labels. */
  readonly id: string
  readonly protocol: string
  readonly agent: string
  /** Whether it goes on after a pause: in the same run, or in a new one that answers its session's interrupts. */
  readonly isResumed: boolean
  /** What {@link RunObserver.trace} said when the run was started; of a run that goes on. */
  readonly trace?: string
}

/** How an execution ended for its observer. */
export interface ObservedEnd {
  /**
   * Of a bounded set, fit for a label: the protocol's end (`completed`, `paused`, `cancelled`, `timeout`, `failed`), what interrupted it
   * (`disconnect`, `shutdown`, `superseded`, `agent`), or why nothing could be promised: `unavailable` (the store), `lost` (another node has the
   * run), `handed-over` (given up by a node that closes), `not-started` (the start failed and was undone).
   */
  readonly reason: 'completed' | 'paused' | 'cancelled' | 'timeout' | 'failed' | 'disconnect' | 'shutdown' | 'superseded' | 'agent' |
    'unavailable' | 'lost' | 'handed-over' | 'not-started'
  /** Code of a failure. An agent chooses it, so it is no label. */
  readonly code?: string
}

/** Watches one execution. Each method is called at most once, in the order in which they stand here. */
export interface RunObserver {
  /** Kept with the run, and given to whoever watches its next execution, on any node. */
  readonly trace?: string
  /** The run is at the head of its session's queue, and its agent is asked for. */
  running? (): void
  /** Calls `work`, which makes the agent and pulls all its events: the place to set an asynchronous context. Must return what `work` returns. */
  execute? <T>(work: () => Promise<T>): Promise<T>
  /** The agent has yielded for the first time. */
  firstEvent? (): void
  /** The run answers this one, which had paused. May come at any time, or not at all. */
  answers? (paused: RunRecord): void
  /** Always comes, last. */
  ended (end: ObservedEnd): void
}

/**
 * Watches an engine: for metrics, traces and whatever else an operator wants.
 *
 * An object that is handed in, not `node:diagnostics_channel`: channels are one set of names for the whole process, while a process may hold
 * several engines (and a test suite always does); a subscriber of a channel cannot give anything back, and traces have to (the text that is
 * kept with the run, the context that the agent runs in); and an absent observer costs one comparison. What is called is called a few
 * times a run, never per event. Methods are called synchronously, in the asynchronous context of the caller, and must not throw.
 */
export interface EngineObserver {
  /** An execution is about to begin: its run has its place in the queue, and is written next. */
  starting? (run: StartingRun): RunObserver | undefined
  /** This node has ended a run whose owner was gone. */
  reaped? (record: RunRecord): void
  /** A call of the store has settled, or was given up as `late`. */
  storeCalled? (operation: OperationName, ms: number, outcome: 'ok' | 'failed' | 'late'): void
}

/** The execution's end in an observer's words. */
export function observedEnd (end: ExecutionEnd): ObservedEnd {
  switch (end.kind) {
    case 'interrupted': return { reason: end.why }
    case 'failed': return { reason: end.kind, code: end.error.code }
    default: return { reason: end.kind }
  }
}
