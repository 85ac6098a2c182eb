import { type FastifyRequest } from 'fastify'
import { type Store } from '../../lib/stores/index.ts'
import { type AgentSource, type Principal } from './registry.ts'
import { InvalidOptionError, readBoolean, readChoice, readFunction, readInteger, readMs } from '../../lib/options.ts'
import { type HealthPaths } from './health.ts'

/**
 * Tells who stands behind a request; every run, thread and interrupt belongs to that principal.
 * Returning nothing refuses the request with 401. Throw an error with a `statusCode` to refuse it in another way.
 */
export type GetPrincipal = (request: FastifyRequest) => Principal | undefined | null | Promise<Principal | undefined | null>

/** Options that the `agents` plugin and every protocol plugin share. */
export interface AgentsOptions {
  /** Agents by name: an instance that all runs share, or a factory that makes one for each run. */
  readonly agents?: Readonly<Record<string, AgentSource>>
  /** Name of the agent that answers when a request names none. @default the only one, or the one named `default` */
  readonly defaultAgent?: string
  /** Where runs, logs and interrupts are kept. What is passed in is left open when the server closes. @default a memory store of its own */
  readonly store?: Store
  /** Who stands behind a request. @default nobody: all callers share one owner */
  readonly getPrincipal?: GetPrincipal
  /** Milliseconds for which a run belongs to the node that executes it, unless renewed. @default 15000 */
  readonly leaseMs?: number
  /** Milliseconds after which a call to the store counts as failed. @default 2000 */
  readonly storeTimeoutMs?: number
  /** Milliseconds for everything that runs to come to its end while the server closes. @default 5000 */
  readonly shutdownMs?: number
  /** Runs are interrupted at once when the server closes, or get three quarters of `shutdownMs` to finish first, or are left to another node where that can begin them again (tasks of a `restartable` agent) and interrupted where not. @default 'interrupt' */
  readonly onShutdown?: 'interrupt' | 'finish' | 'hand-over'
  /** What one owner may have at once; a request beyond is refused with 429 before anything is started. @default no limits */
  readonly limits?: LimitOptions
}

/** Limits of one owner. Without `getPrincipal` all callers are one. */
export interface LimitOptions {
  /** Runs that are queued or under way, over all nodes that share the store. Those that wait for an answer do not count. @default no limit */
  readonly maxRuns?: number
  /** Streams that are open on this server. @default no limit */
  readonly maxStreams?: number
  /** Rough bytes of inputs and logs in the store; other nodes' are looked at once a minute. @default no limit */
  readonly maxStoredBytes?: number
}

/** Options of the `agents` plugin alone. */
export interface AgentsPluginOptions extends AgentsOptions {
  /** Serves Prometheus metrics under this path; needs the package `prom-client`. @default none */
  readonly metrics?: { readonly path: string }
  /** Spans of runs and streams by the OpenTelemetry API; needs the package `@opentelemetry/api`. @default false */
  readonly tracing?: boolean
  /** Routes that say whether the process is alive and whether it takes work. @default none; given: `/livez` and `/readyz` */
  readonly health?: Partial<HealthPaths>
}

/** The options with every default filled in. */
export interface ResolvedAgentsOptions {
  readonly agents: Readonly<Record<string, AgentSource>>
  readonly defaultAgent: string | undefined
  readonly store: Store | undefined
  readonly getPrincipal: GetPrincipal | undefined
  readonly leaseMs: number
  readonly storeTimeoutMs: number
  readonly shutdownMs: number
  readonly onShutdown: 'interrupt' | 'finish' | 'hand-over'
  readonly limits: { readonly [Name in keyof LimitOptions]-?: number | undefined }
}

/** The plugin's own options with every default filled in. */
export interface ResolvedPluginOptions {
  readonly metrics: { readonly path: string } | undefined
  readonly tracing: boolean
  readonly health: HealthPaths | undefined
}

/** Fills in defaults. @throws AGT_ERR_OPTION_INVALID */
export function resolveAgentsOptions (options: AgentsOptions): ResolvedAgentsOptions {
  return {
    agents: options.agents ?? {},
    defaultAgent: options.defaultAgent,
    store: options.store,
    getPrincipal: readFunction('getPrincipal', options.getPrincipal),
    leaseMs: readMs('leaseMs', options.leaseMs, { default: 15_000, min: 1_000 }),
    storeTimeoutMs: readMs('storeTimeoutMs', options.storeTimeoutMs, { default: 2_000, min: 10 }),
    shutdownMs: readMs('shutdownMs', options.shutdownMs, { default: 5_000, min: 1, zeroIsOff: true }),
    onShutdown: readChoice('onShutdown', options.onShutdown, ['interrupt', 'finish', 'hand-over'], 'interrupt'),
    limits: {
      maxRuns: readLimit('maxRuns', options.limits),
      maxStreams: readLimit('maxStreams', options.limits),
      maxStoredBytes: readLimit('maxStoredBytes', options.limits)
    }
  }
}

/** Fills in defaults. @throws AGT_ERR_OPTION_INVALID */
export function resolvePluginOptions ({ metrics, tracing, health }: AgentsPluginOptions): ResolvedPluginOptions {
  return {
    metrics: metrics === undefined ? undefined : { path: readPath('metrics.path', metrics.path) },
    tracing: readBoolean('tracing', tracing, false),
    health: health === undefined ? undefined : { livePath: readPath('health.livePath', health.livePath, '/livez'), readyPath: readPath('health.readyPath', health.readyPath, '/readyz') }
  }
}

function readLimit (name: keyof LimitOptions, limits: LimitOptions | undefined): number | undefined {
  const value = limits?.[name]
  return value === undefined ? undefined : readInteger(`limits.${name}`, value, { default: 0, min: 1 })
}

function readPath (name: string, value: string | undefined, fallback?: string): string {
  if (value === undefined && fallback !== undefined) return fallback
  if (typeof value === 'string' && /^\/[^\s:*?#]*$/.test(value)) return value
  throw new InvalidOptionError(name, JSON.stringify(value) ?? String(value), 'it is a path that begins with a slash and has no parameters')
}
