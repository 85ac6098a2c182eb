import { type FastifyRequest } from 'fastify'
import { type Store } from '../../lib/stores/index.ts'
import { type AgentSource, type Principal } from './registry.ts'
import { readFunction, readMs } from '../../lib/options.ts'

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
  /** Milliseconds that running agents get to settle while the server closes. @default 5000 */
  readonly shutdownMs?: number
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
    shutdownMs: readMs('shutdownMs', options.shutdownMs, { default: 5_000, min: 1, zeroIsOff: true })
  }
}
