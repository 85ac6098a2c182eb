import { type FastifyCorsOptions } from '@fastify/cors'
import { type FastifyRequest } from 'fastify'
import { type RuntimeContext, type ToolMergeModeName } from '../../lib/agent/index.ts'
import { InvalidOptionError, readBoolean, readChoice, readFunction, readInteger, readMs } from '../../lib/options.ts'
import { type DisconnectPolicy, type ReplayLimits } from '../../lib/runs/index.ts'
import { type AgentsOptions } from '../agents/options.ts'
import { resolveMappingConfig, type MappingConfig, type MappingOptions } from './config.ts'
import { type RunAgentInput } from './schemas.ts'

const MERGE_MODES: readonly ToolMergeModeName[] = [
  'MERGE_EXTERNAL_PRIORITY', 'MERGE_AGENT_PRIORITY', 'EXTERNAL_ONLY', 'AGENT_ONLY', 'MERGE_FRONTEND_PRIORITY', 'FRONTEND_ONLY'
]

/** What a {@link RuntimeContextResolver} is told about the request. */
export interface RuntimeContextRequest {
  /** The validated, normalised input. Everything in it comes from the caller. */
  readonly input: RunAgentInput
  readonly headerAgentId: string | undefined
  readonly pathAgentId: string | undefined
  readonly transport: 'fastify'
  readonly method: string
  readonly path: string
  readonly headers: FastifyRequest['headers']
  readonly queryParams: unknown
  /** The request itself. */
  readonly nativeRequest: FastifyRequest
  /** First value of a header; the name's case does not matter. */
  firstHeader (name: string): string | undefined
}

/** Attributes that a run's context carries, and who its user is. AG-UI's own keys are written over them. */
export interface ResolvedRuntimeContext {
  readonly attributes?: Iterable<readonly [string, unknown]>
  readonly userId?: string
  /** Called with the context itself, for typed keys; before AG-UI's keys are written. */
  readonly prepare?: (context: RuntimeContext) => void
}

/** Fills a run's context from its request. May be asynchronous. */
export type RuntimeContextResolver = (request: RuntimeContextRequest) => ResolvedRuntimeContext | undefined | Promise<ResolvedRuntimeContext | undefined>

/** What happens to a run on a thread that already has one. */
export type Concurrency = 'reject' | 'queue' | 'supersede'

/** Options of the AG-UI plugin. */
export interface AgUiOptions extends AgentsOptions, MappingOptions {
  /** Path under which the routes stand; Fastify's own option. @default '/agui' */
  readonly prefix?: string
  /** Request header that chooses the agent. @default 'x-agent-id' */
  readonly agentIdHeader?: string
  /** Whether `/run/:agentId` and `/connect/:agentId` exist. @default true */
  readonly enablePathRouting?: boolean
  /** `false` for none, or options of @fastify/cors for this prefix. Ignored where the host registered @fastify/cors itself. @default any origin, no credentials */
  readonly cors?: boolean | FastifyCorsOptions
  /** Largest request body in bytes. @default 20971520 */
  readonly bodyLimit?: number
  /** How deep a request body may be nested, at most 190. @default 64 */
  readonly maxDepth?: number
  /** What happens to a run when nobody is connected to it any more. @default 'interrupt' */
  readonly onDisconnect?: DisconnectPolicy
  /** Alias of `onDisconnect`: true = 'interrupt', false = 'continue'. */
  readonly interruptOnDisconnect?: boolean
  /** Milliseconds a run may take; 0 turns the limit off. @default 600000 */
  readonly runTimeoutMs?: number
  /** Milliseconds an aborted agent gets to settle before its stream is abandoned. @default 5000 */
  readonly cancelGraceMs?: number
  /** Milliseconds of silence before a heartbeat comment; 0 turns it off. @default 15000 */
  readonly heartbeatMs?: number
  /** Milliseconds a reader may take nothing before it counts as gone. @default 30000 */
  readonly writeTimeoutMs?: number
  /** Milliseconds after which a stream is ended, which counts as a disconnect; 0 = never. @default 0 */
  readonly streamTimeoutMs?: number
  /** How much of a run is kept for `/connect`. @default 5000 events, 4 MiB, 10 minutes after the end */
  readonly replay?: Partial<ReplayLimits>
  /** A second run on a busy thread is refused, waits its turn, or takes the thread over. @default 'reject' */
  readonly concurrency?: Concurrency
  /** Status of the refusal on a busy thread: a stream with RUN_ERROR (200, as the reference), or a JSON error (409). @default 200 */
  readonly conflictStatus?: 200 | 409
  /** Refuse a `protocolVersion` of another major version with 400 instead of serving it as 1.0. @default false */
  readonly strictProtocolVersion?: boolean
  /** What the page's tools do to the agent's own; the reference's older names are taken too. @default 'MERGE_EXTERNAL_PRIORITY' */
  readonly toolMergeMode?: ToolMergeModeName
  /** Whether a request's `context` is shown to the model, as one system message marked as the application's data. @default true */
  readonly injectContext?: boolean
  /** Milliseconds after which a question can only be cancelled; 0 = never. @default 0 */
  readonly interruptTtlMs?: number
  /** Whether `resume` may hold answers to what is not open; they are passed over. @default false */
  readonly lenientUnknown?: boolean
  /** Whether the answer to an approval must fit its schema; otherwise everything but `approved: true` is a denial, as in the reference. @default false */
  readonly strictResponseSchema?: boolean
  /** Fills each run's context from its request. */
  readonly runtimeContextResolver?: RuntimeContextResolver
}

/** The options with every default filled in. */
export interface ResolvedAgUiOptions {
  readonly base: string
  readonly agentIdHeader: string
  readonly enablePathRouting: boolean
  readonly cors: FastifyCorsOptions | undefined
  readonly bodyLimit: number
  readonly maxDepth: number
  readonly onDisconnect: DisconnectPolicy
  readonly runTimeoutMs: number
  readonly cancelGraceMs: number
  readonly heartbeatMs: number
  readonly writeTimeoutMs: number
  readonly streamTimeoutMs: number
  readonly replay: ReplayLimits
  readonly concurrency: Concurrency
  readonly conflictStatus: 200 | 409
  readonly strictProtocolVersion: boolean
  readonly toolMergeMode: ToolMergeModeName
  readonly injectContext: boolean
  readonly interruptTtlMs: number
  readonly lenientUnknown: boolean
  readonly strictResponseSchema: boolean
  readonly runtimeContextResolver: RuntimeContextResolver | undefined
  readonly mapping: MappingConfig
}

/** Fills in defaults. @throws AGT_ERR_OPTION_INVALID */
export function resolveAgUiOptions (options: AgUiOptions): ResolvedAgUiOptions {
  const agentIdHeader = (options.agentIdHeader ?? 'x-agent-id').toLowerCase()
  if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(agentIdHeader)) {
    throw new InvalidOptionError('agentIdHeader', JSON.stringify(options.agentIdHeader), 'it is the name of a header')
  }
  return {
    // With a prefix given Fastify has already put us under it.
    base: options.prefix === undefined ? '/agui' : '',
    agentIdHeader,
    enablePathRouting: readBoolean('enablePathRouting', options.enablePathRouting, true),
    cors: resolveCors(options.cors, agentIdHeader),
    bodyLimit: readInteger('bodyLimit', options.bodyLimit, { default: 20 * 1024 * 1024, min: 1 }),
    maxDepth: readInteger('maxDepth', options.maxDepth, { default: 64, min: 8, max: 190 }),
    onDisconnect: resolveOnDisconnect(options),
    runTimeoutMs: readMs('runTimeoutMs', options.runTimeoutMs, { default: 600_000, min: 1, zeroIsOff: true }),
    cancelGraceMs: readMs('cancelGraceMs', options.cancelGraceMs, { default: 5_000 }),
    heartbeatMs: readMs('heartbeatMs', options.heartbeatMs, { default: 15_000, min: 1_000, zeroIsOff: true }),
    writeTimeoutMs: readMs('writeTimeoutMs', options.writeTimeoutMs, { default: 30_000, min: 1_000 }),
    streamTimeoutMs: readMs('streamTimeoutMs', options.streamTimeoutMs, { default: 0, min: 1_000, zeroIsOff: true }),
    replay: {
      maxEvents: readInteger('replay.maxEvents', options.replay?.maxEvents, { default: 5_000, min: 1 }),
      maxBytes: readInteger('replay.maxBytes', options.replay?.maxBytes, { default: 4 * 1024 * 1024, min: 1_024 }),
      ttlMs: readMs('replay.ttlMs', options.replay?.ttlMs, { default: 600_000 })
    },
    concurrency: readChoice('concurrency', options.concurrency, ['reject', 'queue', 'supersede'], 'reject'),
    conflictStatus: readChoice('conflictStatus', options.conflictStatus, [200, 409], 200),
    strictProtocolVersion: readBoolean('strictProtocolVersion', options.strictProtocolVersion, false),
    toolMergeMode: readChoice('toolMergeMode', options.toolMergeMode, MERGE_MODES, 'MERGE_EXTERNAL_PRIORITY'),
    injectContext: readBoolean('injectContext', options.injectContext, true),
    interruptTtlMs: readMs('interruptTtlMs', options.interruptTtlMs, { default: 0, min: 1, zeroIsOff: true }),
    lenientUnknown: readBoolean('lenientUnknown', options.lenientUnknown, false),
    strictResponseSchema: readBoolean('strictResponseSchema', options.strictResponseSchema, false),
    runtimeContextResolver: readFunction('runtimeContextResolver', options.runtimeContextResolver),
    mapping: resolveMappingConfig(options)
  }
}

function resolveOnDisconnect (options: AgUiOptions): DisconnectPolicy {
  const { onDisconnect, interruptOnDisconnect } = options
  if (onDisconnect === undefined) return readBoolean('interruptOnDisconnect', interruptOnDisconnect, true) ? 'interrupt' : 'continue'
  if (interruptOnDisconnect !== undefined) {
    throw new InvalidOptionError('interruptOnDisconnect', String(interruptOnDisconnect), 'it is another name of onDisconnect, which is given too')
  }
  if (typeof onDisconnect === 'object' && onDisconnect !== null) {
    if (onDisconnect.graceMs === undefined) throw new InvalidOptionError('onDisconnect', '{}', 'it is "interrupt", "continue" or { graceMs }')
    return { graceMs: readMs('onDisconnect.graceMs', onDisconnect.graceMs, { default: 0, min: 1 }) }
  }
  return readChoice<'interrupt' | 'continue'>('onDisconnect', onDisconnect, ['interrupt', 'continue'], 'interrupt')
}

function resolveCors (cors: boolean | FastifyCorsOptions | undefined, agentIdHeader: string): FastifyCorsOptions | undefined {
  if (cors === false) return undefined
  return {
    origin: '*',
    methods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
    allowedHeaders: ['content-type', 'accept', 'authorization', 'last-event-id', 'idempotency-key', agentIdHeader],
    ...typeof cors === 'object' && cors
  }
}
