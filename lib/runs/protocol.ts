import { type AgentEvent, type GenerateReason, type Msg, type Pending, type Usage } from '../agent/index.ts'
import { type BusEvent, type EventInit } from '../bus/index.ts'
import { type InterruptRecord, type RunEndRecord, type RunRecord } from '../stores/index.ts'

/** What an event of the protocol says beside its payload; `level` is what detail views filter on. */
export type EmitOptions = Omit<EventInit, 'data'>

/** Appends one event of the protocol to the run's log; `data` is its canonical payload. Options may be one object used again and again. */
export type Emit = (data: string, options?: EmitOptions) => void

/**
 * Turns the events of one execution into the protocol's. It has state and no I/O: it is called in order, on the owner,
 * and emits synchronously.
 */
export interface Projection {
  /** Called once, before the agent is asked for anything. */
  open (emit: Emit): void
  /** Called for each well-formed event. */
  next (event: AgentEvent, emit: Emit): void
  /** Called once, last: closes what is open and emits the terminal, or the pause. */
  close (end: ExecutionEnd, emit: Emit): void
}

/** Why a run was cut by a policy rather than by its agent or its caller. */
export type InterruptedBy = 'disconnect' | 'shutdown' | 'superseded' | 'agent'

/** How an execution ended; exactly one of these is told (R3). */
export type ExecutionEnd =
  | { readonly kind: 'completed', readonly reason: GenerateReason, readonly message: Msg, readonly usage?: Usage }
  | { readonly kind: 'paused', readonly pending: readonly Pending[], readonly interrupts: readonly InterruptRecord[], readonly message: Msg, readonly usage?: Usage }
  /** Stopped by the protocol's own verb. */
  | { readonly kind: 'cancelled', readonly message?: string, readonly usage?: Usage }
  /** Cut by policy; `agent`: the agent itself reported that it was interrupted. */
  | { readonly kind: 'interrupted', readonly why: InterruptedBy, readonly usage?: Usage }
  | { readonly kind: 'timeout', readonly usage?: Usage }
  | { readonly kind: 'failed', readonly error: RunFailure, readonly usage?: Usage }

/** What a client may know of a failure, and beside it what only the operator may. */
export interface RunFailure {
  /** Machine-readable cause: the agent error's own, `internal_error`, or one of ours in upper case, e.g. `STORE_UNAVAILABLE`. */
  readonly code: string
  /** Public text; generic unless the error says `expose`. */
  readonly message: string
  /** What was thrown, as it was thrown. Never send it to a client unless configured to. */
  readonly cause?: unknown
  readonly retryable?: boolean
}

/** What a projection is told about the execution it maps. */
export interface ExecutionInfo {
  /** 0 for a run's first execution. */
  readonly index: number
  /** Whether the execution goes on after a pause. */
  readonly resumed: boolean
  /** Ids of tool calls that were announced before this execution and may get their result in it. */
  readonly knownCalls: ReadonlySet<string>
}

/** A pure fold over a run's own events (R12). `State` is JSON: it is stored beside the log. */
export interface RunFold<State = unknown> {
  initial (run: RunRecord): State
  /** May change `state` in place and return it. */
  step (state: State, event: BusEvent): State
  /** Events that bring a reader who knows nothing to where `state` stands, open blocks re-opened legally. */
  snapshot (state: State, run: RunRecord): readonly EventInit[]
}

/** Everything the engine needs to know of a protocol. Register it with {@link RunEngine.register}. */
export interface RunProtocol<State = unknown> {
  /** Part of every key; two protocols never see each other's runs (R13). */
  readonly name: string
  /**
   * Where a pause goes on (R2). `run`: the same run, by {@link RunEngine.resume}; its log stays open.
   * `session`: a new run that names the session's interrupts; the paused run's log ends with the pause. @default 'run'
   */
  readonly resumesIn?: 'run' | 'session'
  /** Within what a client's run id is unique. @default 'owner' */
  readonly idScope?: 'owner' | 'session'
  project (run: RunRecord, execution: ExecutionInfo): Projection
  /**
   * The protocol's own id of an interrupt, unique within the session's open ones. `undefined`: nothing to be recorded, nobody is
   * waited for (a call that the client answers with its next request); a pause without a recorded interrupt completes the run.
   */
  interruptId (pending: Pending, run: RunRecord): string | undefined
  readonly fold?: RunFold<State>
  /** What the record keeps of an end beside, or instead of, what the engine writes: a result, the text that clients are told. Pure. */
  endRecord? (end: ExecutionEnd, run: RunRecord): Partial<RunEndRecord>
  /**
   * The terminal of a run that cannot say it itself: its owner died (`NODE_LOST`), or what it had to say could not be
   * stored (`STORE_UNAVAILABLE`). Pure, and legal after any event with blocks still open.
   */
  lost (run: RunRecord, failure: RunFailure): readonly EventInit[]
}

/** Where a reader without a usable cursor starts: `events` first, then everything after `seq`. */
export interface Snapshot {
  readonly epoch: string
  readonly seq: number
  readonly events: readonly EventInit[]
}
