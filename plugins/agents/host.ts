import { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { RunEngine } from '../../lib/runs/index.ts'
import { type SseObserver } from '../../lib/sse/index.ts'
import { memoryStore, type Owner, type Store } from '../../lib/stores/index.ts'
import { UnauthenticatedError } from './errors.ts'
import { warnWhenOpen } from './exposure.ts'
import { resolveAgentsOptions, type AgentsOptions, type GetPrincipal } from './options.ts'
import { AgentRegistry, type Principal } from './registry.ts'
import { StreamLimit } from './stream-limit.ts'
import { type Watcher } from './watcher.ts'

/** What hosts of one engine have in common. */
export interface HostParts {
  readonly engine: RunEngine
  readonly store: Store
  readonly shutdownMs: number
  readonly onShutdown: 'interrupt' | 'finish' | 'hand-over'
  readonly streamLimit: StreamLimit | undefined
  readonly watcher: Pick<Watcher, 'streams'> | undefined
  /** Those of all hosts. */
  readonly registries: Set<AgentRegistry>
  /** Whether the operator has been told that everybody is let in. */
  readonly exposure: { isWarned: boolean }
}

/** What protocol plugins stand on: agents by name, the engine that runs them, and who is asking. */
export class AgentsHost {
  /** Agents by name. */
  readonly registry: AgentRegistry
  /** Runs agents for every protocol; one for all plugins that share this host. */
  readonly engine: RunEngine
  /** Where runs are kept. */
  readonly store: Store
  readonly #parts: HostParts
  readonly #getPrincipal: GetPrincipal | undefined

  /** Made by `createHost`, and by `with`. */
  constructor (registry: AgentRegistry, parts: HostParts, getPrincipal: GetPrincipal | undefined) {
    this.registry = registry
    this.engine = parts.engine
    this.store = parts.store
    this.#parts = parts
    this.#getPrincipal = getPrincipal
    parts.registries.add(registry)
  }

  /** Whether a host of this engine has an agent of that name, or it is that of whichever answers by default: what a client asks for may be any text. */
  isAgent (name: string): boolean {
    return name === 'default' || [...this.#parts.registries].some((registry) => registry.has(name))
  }

  /** The principal of a request, or `undefined` where no `getPrincipal` is configured. @throws AGT_ERR_UNAUTHENTICATED */
  async principalOf (request: FastifyRequest): Promise<Principal | undefined> {
    if (this.#getPrincipal === undefined) return undefined
    const principal = await this.#getPrincipal(request)
    if (principal === undefined || principal === null || typeof principal.id !== 'string' || principal.id === '') throw new UnauthenticatedError()
    return principal
  }

  /**
   * Counts a reply that will be a stream among its owner's. Call it as soon as the owner is known, before anything is started: it counts until the
   * connection has let go of the reply. @throws AGT_ERR_STREAM_LIMIT
   */
  admitStream (owner: Owner, reply: FastifyReply): void {
    this.#parts.streamLimit?.take(owner, reply)
  }

  /** Who watches a protocol's streams: for its `SseHub`. Open a run's stream with the run's record. */
  streamObserver (protocol: string): SseObserver | undefined {
    return this.#parts.watcher?.streams(protocol)
  }

  /** Has the operator warned if the server listens beyond loopback and nobody is asked who they are. */
  warnWhenOpen (app: FastifyInstance): void {
    if (this.#getPrincipal === undefined) warnWhenOpen(app, this.#parts.exposure)
  }

  /** The same engine and store with other agents or another way to tell principals. */
  with (options: Pick<AgentsOptions, 'agents' | 'defaultAgent' | 'getPrincipal'>): AgentsHost {
    const isOwn = options.agents !== undefined || options.defaultAgent !== undefined
    const registry = isOwn ? new AgentRegistry(options.agents ?? this.registry, options.defaultAgent) : this.registry
    return new AgentsHost(registry, this.#parts, options.getPrincipal ?? this.#getPrincipal)
  }

  /**
   * Refuses starts from now on with 503 and `Retry-After`, each protocol in its own words, and is not ready any more, while everything else is
   * still answered. Call it some time before `app.close()`, so that a balancer sends nobody here by then.
   */
  drain (): void {
    this.engine.drain()
  }

  /** Ends every run within `shutdownMs`, as `onShutdown` says. Again is the same closing. */
  close (): Promise<void> {
    return this.engine.close({ timeoutMs: this.#parts.shutdownMs, running: this.#parts.onShutdown })
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
export function createHost (app: FastifyInstance, options: AgentsOptions, watcher?: Omit<Watcher, 'attach'>): AgentsHost {
  const { agents, defaultAgent, getPrincipal, leaseMs, storeTimeoutMs, shutdownMs, onShutdown, limits, ...resolved } = resolveAgentsOptions(options)
  const store = resolved.store ?? memoryStore()
  const engine = new RunEngine({ store, logger: app.log as FastifyBaseLogger, leaseMs, storeTimeoutMs, limits, observer: watcher })
  const streamLimit = limits.maxStreams === undefined ? undefined : new StreamLimit(limits.maxStreams)
  const parts: HostParts = { engine, store, shutdownMs, onShutdown, streamLimit, watcher, registries: new Set(), exposure: { isWarned: false } }
  const host = new AgentsHost(new AgentRegistry(agents, defaultAgent), parts, getPrincipal)
  app.addHook('preClose', () => host.close())
  app.addHook('onClose', async () => { if (resolved.store === undefined) await store.close?.() })
  return host
}

/** The server's shared host where the `agents` plugin is registered, otherwise one for this plugin alone. */
export function hostFor (app: FastifyInstance, options: AgentsOptions): AgentsHost {
  const host = app.hasDecorator('agents') ? app.agents.with(options) : createHost(app, options)
  host.warnWhenOpen(app)
  return host
}
