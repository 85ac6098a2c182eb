import { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest } from 'fastify'
import { RunEngine } from '../../lib/runs/index.ts'
import { memoryStore, type Owner, type Store } from '../../lib/stores/index.ts'
import { UnauthenticatedError } from './errors.ts'
import { resolveAgentsOptions, type AgentsOptions, type GetPrincipal } from './options.ts'
import { AgentRegistry, type Principal } from './registry.ts'

/** What protocol plugins stand on: agents by name, the engine that runs them, and who is asking. */
export class AgentsHost {
  /** Agents by name. */
  readonly registry: AgentRegistry
  /** Runs agents for every protocol; one for all plugins that share this host. */
  readonly engine: RunEngine
  /** Where runs are kept. */
  readonly store: Store
  readonly #getPrincipal: GetPrincipal | undefined
  readonly #shutdownMs: number

  constructor (registry: AgentRegistry, engine: RunEngine, store: Store, getPrincipal: GetPrincipal | undefined, shutdownMs: number) {
    this.#shutdownMs = shutdownMs
    this.registry = registry
    this.engine = engine
    this.store = store
    this.#getPrincipal = getPrincipal
  }

  /** The principal of a request, or `undefined` where no `getPrincipal` is configured. @throws AGT_ERR_UNAUTHENTICATED */
  async principalOf (request: FastifyRequest): Promise<Principal | undefined> {
    if (this.#getPrincipal === undefined) return undefined
    const principal = await this.#getPrincipal(request)
    if (principal === undefined || principal === null || typeof principal.id !== 'string' || principal.id === '') throw new UnauthenticatedError()
    return principal
  }

  /** The same engine and store with other agents or another way to tell principals. */
  with (options: Pick<AgentsOptions, 'agents' | 'defaultAgent' | 'getPrincipal'>): AgentsHost {
    const isOwn = options.agents !== undefined || options.defaultAgent !== undefined
    const registry = isOwn ? new AgentRegistry(options.agents ?? this.registry, options.defaultAgent) : this.registry
    return new AgentsHost(registry, this.engine, this.store, options.getPrincipal ?? this.#getPrincipal, this.#shutdownMs)
  }

  /** Ends every run: agents get `shutdownMs` to settle. Again is the same closing. */
  close (): Promise<void> {
    return this.engine.close({ timeoutMs: this.#shutdownMs })
  }
}

/** The owner under which the store keeps what a principal starts. */
export function ownerOf (principal: Principal | undefined): Owner {
  if (principal === undefined) return {}
  return { id: principal.id, ...principal.tenant !== undefined && { tenant: principal.tenant } }
}

/**
 * Makes an engine that ends with the server: running agents settle and streams get their terminal before connections
 * are waited for (`preClose`), a store of our own is closed last (`onClose`).
 */
export function createHost (app: FastifyInstance, options: AgentsOptions): AgentsHost {
  const resolved = resolveAgentsOptions(options)
  const store = resolved.store ?? memoryStore()
  const engine = new RunEngine({
    store,
    logger: app.log as FastifyBaseLogger,
    leaseMs: resolved.leaseMs,
    storeTimeoutMs: resolved.storeTimeoutMs
  })
  const host = new AgentsHost(new AgentRegistry(resolved.agents, resolved.defaultAgent), engine, store, resolved.getPrincipal, resolved.shutdownMs)
  app.addHook('preClose', () => host.close())
  app.addHook('onClose', async () => { if (resolved.store === undefined) await store.close?.() })
  return host
}

/** The server's shared host where the `agents` plugin is registered, otherwise one for this plugin alone. */
export function hostFor (app: FastifyInstance, options: AgentsOptions): AgentsHost {
  if (!app.hasDecorator('agents')) return createHost(app, options)
  return app.agents.with(options)
}
