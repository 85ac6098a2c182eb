import { type Agent, type AgentInput, type Decision, type PermissionRule, type RuntimeContext } from '../agent/index.ts'
import { type InterruptRecord, type JsonObject, type JsonValue, type Owner } from '../stores/index.ts'
import { type RunProtocol } from './protocol.ts'
import { type Run } from './run.ts'

/** What becomes of a run when nobody is connected to it any more (R18). */
export type DisconnectPolicy = 'interrupt' | 'continue' | { readonly graceMs: number }

/** How much of a run's log is kept in memory for readers that come back. */
export interface ReplayLimits {
  readonly maxEvents: number
  readonly maxBytes: number
  /** Milliseconds after the run's end. */
  readonly ttlMs: number
}

/** What one execution needs: a new run's first one, or the next one after a pause. */
export interface ExecutionSpec {
  /** An instance, which is never closed by us, or a factory, whose instance is closed when its run ends; the signal fires when the execution is ended. */
  readonly agent: Agent | ((signal: AbortSignal) => Agent | Promise<Agent>)
  readonly input: AgentInput
  /** Fills the context before the agent sees it; throwing fails the run. */
  readonly prepareContext?: (context: RuntimeContext) => void | Promise<void>
  readonly userId?: string
  /** Name of the session as the agent knows it. @default `RunSpec.session` */
  readonly sessionId?: string
  readonly denyRules?: readonly PermissionRule[]
  readonly onDisconnect: DisconnectPolicy
  /** Milliseconds an execution may take; 0 = no limit. */
  readonly runTimeoutMs: number
  /** Milliseconds an aborted agent gets to settle before its iterator is abandoned and the terminal told. */
  readonly cancelGraceMs: number
  /** Milliseconds the agent waits for its own caller before that counts as a disconnect (R17). @default 30000 */
  readonly writeTimeoutMs?: number
  /** Whether the run keeps its session when it pauses. */
  readonly holdGateWhileWaiting: boolean
  readonly replay: ReplayLimits
  /** Milliseconds after which an interrupt of this execution can only be cancelled; 0 = never. @default 0 */
  readonly interruptTtlMs?: number
  /** Milliseconds after its end for which the run is kept in the store. @default the store's own */
  readonly keepMs?: number
}

/** Admits a start once (R15). */
export interface Idempotency {
  /** Unique within owner and protocol. */
  readonly key: string
  /** Digest of the body. */
  readonly fingerprint: string
  /** What the same key with another fingerprint means: a conflict, or a new run unless the recorded one is active. @default 'conflict' */
  readonly onOther?: 'conflict' | 'new-unless-active'
}

/** Answers to the session's open interrupts, for protocols that resume in a new run. */
export interface ResumeClaim {
  readonly interrupts: readonly string[]
  readonly decisions: readonly Decision[]
  /** `RunKey.id` of the run that they were read from: a later pause with the same ids is not what was answered. @default not checked */
  readonly run?: string
}

/** Everything needed to start a run. */
export interface RunSpec extends ExecutionSpec {
  readonly protocol: RunProtocol
  /** Name of the agent, as the protocol knows it. */
  readonly agentId: string
  /** The protocol's own id of the run: runId, task id, response id. */
  readonly clientId: string
  /** Conversation the run belongs to; runs of one session are executed one at a time (R19). */
  readonly session: string
  readonly owner: Owner
  /** Fixed at start and stored with the run (R11): profile, exposure, detail ceiling. */
  readonly detail?: JsonObject
  /** What a resume after a restart needs (R21): input, tools, attributes, deny rules. */
  readonly stored?: JsonValue
  readonly idempotency?: Idempotency
  /** What happens while another run of the session is active. */
  readonly onBusySession: 'reject' | 'queue' | 'supersede'
  readonly resumes?: ResumeClaim
  /** Whether the run must not start while the session has open interrupts that it does not answer. @default protocol.resumesIn === 'session' */
  readonly requireResume?: boolean
}

/** What is wrong with the interrupts that a start or a resume names; nothing was claimed. */
export interface InterruptProblem {
  /**
   * `none-open`: there is nothing to answer. `unanswered`: the session has open interrupts and the start names none.
   * `mismatch`: not exactly the open ones are named. `duplicate`: one is named twice. `expired`: it can only be cancelled.
   * `taken`: somebody else answered first.
   */
  readonly kind: 'none-open' | 'unanswered' | 'mismatch' | 'duplicate' | 'expired' | 'taken'
  readonly open: readonly InterruptRecord[]
  /** Open ones that are not named. */
  readonly missing: readonly string[]
  /** Named ones that are not open (or are named twice, expired, taken). */
  readonly ids: readonly string[]
}

/** What became of a start. */
export type StartResult =
  | { readonly kind: 'started' | 'existing', readonly run: Run }
  /** The idempotency key is taken by another body. */
  | { readonly kind: 'conflict', readonly run?: Run }
  /** Another run of the session is active; `runningId` is its protocol's own id. */
  | { readonly kind: 'busy', readonly runningId: string }
  | { readonly kind: 'interrupts', readonly problem: InterruptProblem }
  /** The engine is closing; try another node or later. */
  | { readonly kind: 'closing' }

/** The next execution of a waiting run; what is left out is taken from the run's start where this node still has it. */
export interface ResumeSpec extends Omit<ExecutionSpec, 'agent'> {
  readonly agent?: ExecutionSpec['agent']
  /** Decisions for the agent; every open interrupt of the run is answered by one. */
  readonly decisions: readonly Decision[]
}

/** What became of a resume. */
export type ResumeResult =
  | { readonly kind: 'resumed', readonly run: Run }
  /** The run does not wait: it is running, or it has ended. */
  | { readonly kind: 'not-waiting', readonly run: Run }
  | { readonly kind: 'interrupts', readonly problem: InterruptProblem }
  /** The instance that paused is gone, and no `agent` was given. */
  | { readonly kind: 'no-agent' }
  | { readonly kind: 'closing' }
