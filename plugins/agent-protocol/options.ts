import { join, resolve } from 'node:path'
import { InvalidOptionError, readBoolean, readChoice, readFunction, readInteger, readMs } from '../../lib/options.ts'
import { type DisconnectPolicy, type ReplayLimits } from '../../lib/runs/index.ts'
import { type AgentsOptions } from '../agents/options.ts'
import { type AgentFactory } from './agent-request.ts'
import { inOrder, type OrderedCustomizer, type RuntimeContextCustomizer } from './customizer.ts'
import { readTaskStorePath } from './task-store.ts'

/** Options of the Agent Protocol plugin. */
export interface AgentProtocolOptions extends AgentsOptions {
  /** Path under which the routes stand; Fastify's own option. @default the root: `/tasks` */
  readonly prefix?: string
  /** Whether the routes are registered at all. @default true */
  readonly enabled?: boolean
  /** Chooses the agent of each execution. @default by `agent_id` among the agents, else the default one */
  readonly agentFactory?: AgentFactory
  /** Fill the runtime context of each execution, in order. */
  readonly customizers?: readonly (RuntimeContextCustomizer | OrderedCustomizer)[]
  /** Whether `GET /tasks/{id}/events` streams. @default true */
  readonly streamingEnabled?: boolean
  /** Whether tasks pause for answers. Otherwise everything an agent asks for is refused, and it goes on. @default true */
  readonly hitlEnabled?: boolean
  /** Rounds of such refusals before the task fails. @default 5 */
  readonly maxAutoDenyRounds?: number
  /** Whether a submission needs an `input`. @default false */
  readonly requireInput?: boolean
  /** Whether a resume must answer everything that is pending; otherwise the rest is denied. @default false */
  readonly requireAllDecisions?: boolean
  /** Whether an agent is handed the `rules` of a decision, for those that remember what was allowed. @default false */
  readonly acceptRules?: boolean
  /** What becomes of a new task whose session a paused task keeps. @default 'reject' */
  readonly onBusySession?: 'reject' | 'queue'
  /** Which cursor counts when both are given: the query, as the reference documents, or the larger one, which browsers need. @default 'query' */
  readonly resumePrecedence?: 'query' | 'max'
  /** Whether `context.user_id` is believed where `getPrincipal` tells who asks. @default false */
  readonly trustContextUserId?: boolean
  /** Whether clients are told the messages of errors that agents throw. @default false */
  readonly exposeErrors?: boolean
  /** `reference`: unknown tasks are answered as the reference does, with 200 and an error (409 on a resume). @default unset */
  readonly compat?: 'reference'
  /** Largest request body in bytes. @default 20971520 */
  readonly bodyLimit?: number
  /** Seconds a wait takes that names no timeout. @default 7200 */
  readonly defaultWaitSeconds?: number
  /** Longest wait in seconds; longer ones are shortened. @default 7200 */
  readonly maxWaitSeconds?: number
  /** Milliseconds an execution may take; 0 turns the limit off. @default 7200000 */
  readonly runTimeoutMs?: number
  /** Milliseconds a cancelled agent gets to settle before it is abandoned. @default 5000 */
  readonly cancelGraceMs?: number
  /** What becomes of a task when nobody reads its stream any more. @default 'continue' */
  readonly onDisconnect?: DisconnectPolicy
  /** How much of a task is kept for replay. @default 256 events, 4 MiB, 10 minutes after the end */
  readonly replay?: Partial<ReplayLimits>
  /** Alias of `replay.maxEvents`, at least 16. */
  readonly sseReplayBufferSize?: number
  /** Milliseconds of silence before a heartbeat comment; 0 turns it off. @default 15000 */
  readonly heartbeatMs?: number
  /** Milliseconds a reader may take nothing before it counts as gone. @default 30000 */
  readonly writeTimeoutMs?: number
  /** Milliseconds after which a stream is ended; 0 = never. @default 10800000 */
  readonly streamTimeoutMs?: number
  /** Alias of `streamTimeoutMs`. */
  readonly sseTimeoutMs?: number
  /** Milliseconds a stream waits for its task to be submitted. @default 5000 */
  readonly subscribeGraceMs?: number
  /** Streams of one task. More are refused with 429. @default 16 */
  readonly maxSubscribersPerTask?: number
  /** Streams of all tasks, those that wait for a submission with them. More are refused with 429. @default 1000 */
  readonly maxStreams?: number
  /** Tasks that this process executes at once. @default 1000 */
  readonly maxConcurrentRuns?: number
  /** Tasks that wait for a place. More are refused with 429. @default 10000 */
  readonly maxQueue?: number
  /** Milliseconds a task is kept after its end. @default 86400000 */
  readonly taskTtlMs?: number
  /** Milliseconds a pause may last; 0 = for ever. @default 0 */
  readonly confirmTtlMs?: number
  /** What becomes of a task whose pause has lasted too long: all is denied and it goes on, or it is cancelled. @default 'deny' */
  readonly onConfirmExpiry?: 'deny' | 'cancel'
  /** Whether the classic agentprotocol.ai v1 routes stand beside the native ones, under `/ap/v1`. @default true */
  readonly classic?: boolean
  /** Milliseconds after which a classic step is answered as `running`; the next one joins it. @default 55000 */
  readonly stepTimeoutMs?: number
  /**
   * Directory in which everything is kept, as the reference's users know it: an LMDB store of the plugin's own, and the tasks' directories. `true`:
   * `.agentscope/agent-protocol`. Not beside `store` or the `agents` plugin. @default unset
   */
  readonly taskStorePath?: string | true
  /** Where the tasks' directories stand; they are kept as long as their task. @default under `taskStorePath`, else a temporary directory, which goes with the server */
  readonly workspaceRoot?: string
  /** Bytes of all published and uploaded files of a task. @default 268435456 */
  readonly maxWorkspaceBytes?: number
  /** Bytes of one such file; larger ones that an agent writes by itself are not listed. @default 33554432 */
  readonly maxArtifactBytes?: number
}

/** The options with every default filled in. */
export interface ResolvedAgentProtocolOptions {
  readonly enabled: boolean
  readonly agentFactory: AgentFactory | undefined
  readonly customizers: readonly RuntimeContextCustomizer[]
  readonly streamingEnabled: boolean
  readonly hitlEnabled: boolean
  readonly maxAutoDenyRounds: number
  readonly requireInput: boolean
  readonly requireAllDecisions: boolean
  readonly acceptRules: boolean
  readonly onBusySession: 'reject' | 'queue'
  readonly resumePrecedence: 'query' | 'max'
  readonly trustContextUserId: boolean
  readonly exposeErrors: boolean
  readonly isReference: boolean
  readonly bodyLimit: number
  readonly defaultWaitSeconds: number
  readonly maxWaitSeconds: number
  readonly runTimeoutMs: number
  readonly cancelGraceMs: number
  readonly onDisconnect: DisconnectPolicy
  readonly replay: ReplayLimits
  readonly heartbeatMs: number
  readonly writeTimeoutMs: number
  readonly streamTimeoutMs: number
  readonly subscribeGraceMs: number
  readonly maxSubscribersPerTask: number
  readonly maxStreams: number
  readonly maxConcurrentRuns: number
  readonly maxQueue: number
  readonly taskTtlMs: number
  readonly confirmTtlMs: number
  readonly onConfirmExpiry: 'deny' | 'cancel'
  readonly classic: boolean
  readonly stepTimeoutMs: number
  readonly taskStorePath: string | undefined
  readonly workspaceRoot: string | undefined
  readonly maxWorkspaceBytes: number
  readonly maxArtifactBytes: number
}

/** Characters of a result that a terminal event has room for: an event counts as text and as a frame, in several views. */
export function maxResultOf ({ replay }: ResolvedAgentProtocolOptions): number {
  return Math.floor(replay.maxBytes / 8)
}

/** Bytes that a reader which takes nothing may be behind, before it is cut with a cursor to come back with: less than what is kept. */
export function maxLagOf ({ replay }: ResolvedAgentProtocolOptions): number {
  return Math.floor(replay.maxBytes / 4)
}

/** Fills in defaults. @throws AGT_ERR_OPTION_INVALID */
export function resolveAgentProtocolOptions (options: AgentProtocolOptions): ResolvedAgentProtocolOptions {
  const events = named('replay.maxEvents', options.replay?.maxEvents, 'sseReplayBufferSize', options.sseReplayBufferSize)
  const streamTimeout = named('streamTimeoutMs', options.streamTimeoutMs, 'sseTimeoutMs', options.sseTimeoutMs)
  const taskStorePath = readTaskStorePath(options.taskStorePath)
  const maxWaitSeconds = readInteger('maxWaitSeconds', options.maxWaitSeconds, { default: 7_200, min: 1, max: 2_147_483 })
  return {
    enabled: readBoolean('enabled', options.enabled, true),
    agentFactory: readFunction('agentFactory', options.agentFactory),
    customizers: readCustomizers(options.customizers),
    streamingEnabled: readBoolean('streamingEnabled', options.streamingEnabled, true),
    hitlEnabled: readBoolean('hitlEnabled', options.hitlEnabled, true),
    maxAutoDenyRounds: readInteger('maxAutoDenyRounds', options.maxAutoDenyRounds, { default: 5, min: 1 }),
    requireInput: readBoolean('requireInput', options.requireInput, false),
    requireAllDecisions: readBoolean('requireAllDecisions', options.requireAllDecisions, false),
    acceptRules: readBoolean('acceptRules', options.acceptRules, false),
    onBusySession: readChoice('onBusySession', options.onBusySession, ['reject', 'queue'], 'reject'),
    resumePrecedence: readChoice('resumePrecedence', options.resumePrecedence, ['query', 'max'], 'query'),
    trustContextUserId: readBoolean('trustContextUserId', options.trustContextUserId, false),
    exposeErrors: readBoolean('exposeErrors', options.exposeErrors, false),
    isReference: options.compat !== undefined && readChoice('compat', options.compat, ['reference'], 'reference') === 'reference',
    bodyLimit: readInteger('bodyLimit', options.bodyLimit, { default: 20 * 1024 * 1024, min: 1 }),
    defaultWaitSeconds: readInteger('defaultWaitSeconds', options.defaultWaitSeconds, { default: Math.min(7_200, maxWaitSeconds), min: 0, max: maxWaitSeconds }),
    maxWaitSeconds,
    runTimeoutMs: readMs('runTimeoutMs', options.runTimeoutMs, { default: 7_200_000, min: 1, zeroIsOff: true }),
    cancelGraceMs: readMs('cancelGraceMs', options.cancelGraceMs, { default: 5_000 }),
    onDisconnect: readOnDisconnect(options.onDisconnect),
    replay: {
      maxEvents: readInteger(events.name, events.value, { default: 256, min: 16 }),
      maxBytes: readInteger('replay.maxBytes', options.replay?.maxBytes, { default: 4 * 1024 * 1024, min: 1_024 }),
      ttlMs: readMs('replay.ttlMs', options.replay?.ttlMs, { default: 600_000 })
    },
    heartbeatMs: readMs('heartbeatMs', options.heartbeatMs, { default: 15_000, min: 1_000, zeroIsOff: true }),
    writeTimeoutMs: readMs('writeTimeoutMs', options.writeTimeoutMs, { default: 30_000, min: 1_000 }),
    streamTimeoutMs: readMs(streamTimeout.name, streamTimeout.value, { default: 10_800_000, min: 1_000, zeroIsOff: true }),
    subscribeGraceMs: readMs('subscribeGraceMs', options.subscribeGraceMs, { default: 5_000 }),
    maxSubscribersPerTask: readInteger('maxSubscribersPerTask', options.maxSubscribersPerTask, { default: 16, min: 1 }),
    maxStreams: readInteger('maxStreams', options.maxStreams, { default: 1_000, min: 1 }),
    maxConcurrentRuns: readInteger('maxConcurrentRuns', options.maxConcurrentRuns, { default: 1_000, min: 1 }),
    maxQueue: readInteger('maxQueue', options.maxQueue, { default: 10_000 }),
    taskTtlMs: readInteger('taskTtlMs', options.taskTtlMs, { default: 86_400_000, min: 1 }),
    confirmTtlMs: readMs('confirmTtlMs', options.confirmTtlMs, { default: 0, min: 1, zeroIsOff: true }),
    onConfirmExpiry: readChoice('onConfirmExpiry', options.onConfirmExpiry, ['deny', 'cancel'], 'deny'),
    classic: readBoolean('classic', options.classic, true),
    stepTimeoutMs: readMs('stepTimeoutMs', options.stepTimeoutMs, { default: 55_000, min: 1 }),
    taskStorePath,
    workspaceRoot: readRoot(options.workspaceRoot) ?? (taskStorePath === undefined ? undefined : join(taskStorePath, 'workspaces')),
    maxWorkspaceBytes: readInteger('maxWorkspaceBytes', options.maxWorkspaceBytes, { default: 256 * 1024 * 1024, min: 1 }),
    maxArtifactBytes: readInteger('maxArtifactBytes', options.maxArtifactBytes, { default: 32 * 1024 * 1024, min: 1 })
  }
}

/** An option under one of its two names; both at once are refused. */
function named (name: string, value: number | undefined, alias: string, other: number | undefined): { readonly name: string, readonly value: number | undefined } {
  if (value !== undefined && other !== undefined) throw new InvalidOptionError(alias, String(other), `it is another name of ${name}, which is given too`)
  return other === undefined ? { name, value } : { name: alias, value: other }
}

function readRoot (root: string | undefined): string | undefined {
  if (root !== undefined && (typeof root !== 'string' || root.trim() === '')) throw new InvalidOptionError('workspaceRoot', String(root), 'it is the path of a directory')
  return root === undefined ? undefined : resolve(root)
}

function readOnDisconnect (value: DisconnectPolicy | undefined): DisconnectPolicy {
  if (typeof value === 'object' && value !== null) {
    if (value.graceMs === undefined) throw new InvalidOptionError('onDisconnect', '{}', 'it is "interrupt", "continue" or { graceMs }')
    return { graceMs: readMs('onDisconnect.graceMs', value.graceMs, { default: 0, min: 1 }) }
  }
  return readChoice<'interrupt' | 'continue'>('onDisconnect', value, ['interrupt', 'continue'], 'continue')
}

function readCustomizers (list: AgentProtocolOptions['customizers']): readonly RuntimeContextCustomizer[] {
  if (list === undefined) return Object.freeze([])
  if (!Array.isArray(list)) throw new InvalidOptionError('customizers', typeof list, 'it is an array')
  list.forEach((item: RuntimeContextCustomizer | OrderedCustomizer | undefined, index) => {
    const fits = typeof item === 'function' || (typeof item?.customize === 'function' && (item.order === undefined || Number.isFinite(item.order)))
    if (!fits) throw new InvalidOptionError(`customizers[${index}]`, typeof item, 'it is a function, or { order, customize }')
  })
  return Object.freeze(inOrder(list))
}
