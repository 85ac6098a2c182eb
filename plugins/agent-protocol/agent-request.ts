import { type Agent, contextKey, type Decision, type JsonObject, type JsonValue, type PermissionRule } from '../../lib/agent/index.ts'
import { type Principal } from '../agents/index.ts'
import { attributesOf, type Submission } from './submission.ts'
import { type TaskStatus } from './wire.ts'

/** What a factory and the customizers are told about one execution of a task: the original submission, on every resume too. */
export interface AgentRequest {
  /** Also the session id, unless the submission names one. */
  readonly taskId: string
  /** The submission's `agent_id`, `default` where it names none. */
  readonly agentId: string
  /** Empty on a resume. */
  readonly input: string
  readonly userId: string | undefined
  readonly parentSessionId: string | undefined
  readonly sessionId: string
  /** Whether the task goes on after a pause. */
  readonly resume: boolean
  /** The submission's `context` as it came, custom members with it; frozen. */
  readonly context: JsonObject
  /** `context.attributes` without its nulls; frozen. */
  readonly attributes: JsonObject
  readonly denyRules: readonly PermissionRule[]
  readonly principal: Principal | undefined
  /** Fires when the execution must stop. */
  readonly signal: AbortSignal
  /** The answers, on a resume. */
  readonly decisions: readonly Decision[]
  contextValue (key: string): JsonValue | undefined
  /** The member as text; undefined for one that is absent or null. */
  contextString (key: string): string | undefined
  attributeString (key: string): string | undefined
}

/** How an execution ended, for {@link AgentLease.release}. */
export interface ExecutionOutcome {
  readonly status: TaskStatus
}

/** An agent that is given back: `release` is called once after each execution, also after a pause or an abort, and never before. */
export interface AgentLease {
  readonly agent: Agent
  release? (outcome: ExecutionOutcome): void | Promise<void>
}

/**
 * Chooses the agent of one execution; called on submit and again on each resume, with the original submission. What it returns is the
 * application's: it is never closed here. Throwing or returning nothing fails the task.
 */
export type AgentFactory = (request: AgentRequest) => Agent | AgentLease | null | undefined | Promise<Agent | AgentLease | null | undefined>

/** Typed key under which an agent finds the request of its task. */
export const agentRequestKey = contextKey<AgentRequest>('AgentRequest')

/** What changes from one execution of a task to the next. */
export interface ExecutionRequest {
  readonly principal: Principal | undefined
  readonly userId: string | undefined
  readonly signal: AbortSignal
  /** Absent on submit. */
  readonly decisions?: readonly Decision[] | undefined
}

/** Makes the request of one execution. */
export function agentRequest (submission: Submission, { principal, userId, signal, decisions }: ExecutionRequest): AgentRequest {
  const { taskId, agentId, input, parentSessionId, sessionId, denyRules } = submission
  const context = deepFreeze(structuredClone(submission.context))
  const attributes = deepFreeze(attributesOf(context))
  return Object.freeze({
    taskId,
    agentId,
    input: decisions === undefined ? input : '',
    userId,
    parentSessionId,
    sessionId,
    resume: decisions !== undefined,
    context,
    attributes,
    denyRules,
    principal,
    signal,
    decisions: decisions ?? [],
    contextValue: (key: string) => own(context, key),
    contextString: (key: string) => textOf(own(context, key)),
    attributeString: (key: string) => textOf(own(attributes, key))
  })
}

/** A factory that always gives this agent. */
export function fixed (agent: Agent): AgentFactory {
  return () => agent
}

/** A factory that asks a supplier, which makes or finds the agent. */
export function of (supply: () => Agent | Promise<Agent>): AgentFactory {
  return () => supply()
}

/** A factory that chooses by `agent_id`, else gives the fallback, else nothing. */
export function byId (agents: Readonly<Record<string, Agent>>, fallback?: Agent): AgentFactory {
  const known = new Map(Object.entries(agents))
  return ({ agentId }) => known.get(agentId) ?? fallback
}

function own (object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

function textOf (value: JsonValue | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function deepFreeze<T> (value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFreeze)
    Object.freeze(value)
  }
  return value
}
