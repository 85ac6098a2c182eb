import { type FastifyRequest } from 'fastify'
import { type Agent } from '../../lib/agent/index.ts'
import { InvalidOptionError } from '../../lib/options.ts'
import { AgentNotFoundError } from './errors.ts'

/** What a factory is told about the request it makes an agent for. */
export interface AgentRequest {
  /** The name the agent was asked for under. */
  readonly agentId: string
  /** Protocol that serves the request, e.g. `ag-ui`. */
  readonly protocol: string
  /** The session (thread, context) that the run belongs to. */
  readonly session: string
  /** Who asks, as `getPrincipal` told; empty when nobody is known. */
  readonly principal: Principal | undefined
  /** The request itself. Its headers and body come from the caller and are not to be trusted. */
  readonly request: FastifyRequest
}

/** Makes an agent for one run; the agent is closed when that run ends. Throwing or returning nothing fails the run, whose stream is open by then. */
export type AgentFactory = (request: AgentRequest) => Agent | undefined | null | Promise<Agent | undefined | null>

/** An agent that is shared by all runs and never closed by us, or a factory that makes one for each run. */
export type AgentSource = Agent | AgentFactory

/** Who stands behind a request. */
export interface Principal {
  readonly id: string
  readonly tenant?: string
}

/** An agent that was looked up: `make` yields the instance of one run, `isOwned` says whether it is closed at the run's end. */
export interface ResolvedAgent {
  readonly agentId: string
  readonly isOwned: boolean
  make (request: AgentRequest): Promise<Agent>
}

/**
 * Agents by name. A name holds an instance or a factory; registering a name again replaces it.
 */
export class AgentRegistry {
  readonly #sources: Map<string, AgentSource>
  readonly #defaultAgent: string | undefined

  /** @param agents names to agents, or another registry whose agents are shared from then on. */
  constructor (agents: Readonly<Record<string, AgentSource>> | AgentRegistry = {}, defaultAgent?: string) {
    this.#sources = agents instanceof AgentRegistry ? agents.#sources : new Map()
    if (!(agents instanceof AgentRegistry)) {
      for (const [id, source] of Object.entries(agents)) this.register(id, source)
    }
    if (defaultAgent !== undefined && !this.#sources.has(defaultAgent)) {
      throw new InvalidOptionError('defaultAgent', JSON.stringify(defaultAgent), `the registered agents are ${[...this.#sources.keys()].join(', ') || 'none'}`)
    }
    this.#defaultAgent = defaultAgent
  }

  /** Names of all agents, in the order they were registered. */
  get ids (): readonly string[] {
    return [...this.#sources.keys()]
  }

  /** The agent that answers when a request names none: `defaultAgent`, else the only one, else the one called `default`. */
  get defaultId (): string | undefined {
    if (this.#defaultAgent !== undefined) return this.#defaultAgent
    if (this.#sources.size === 1) return this.ids[0]
    return this.#sources.has('default') ? 'default' : undefined
  }

  /** Whether an agent of that name is registered. */
  has (id: string): boolean {
    return this.#sources.has(id)
  }

  /** Adds an agent, or replaces the one of that name. Runs that are under way keep theirs. */
  register (id: string, source: AgentSource): void {
    if (id.trim() === '') throw new InvalidOptionError('agents', JSON.stringify(id), 'a name must not be blank')
    if (typeof source !== 'function' && typeof source?.stream !== 'function') {
      throw new InvalidOptionError('agents', id, 'an agent has a stream() method; a factory is a function that returns one')
    }
    this.#sources.set(id, source)
  }

  /** Removes an agent; answers whether there was one. */
  unregister (id: string): boolean {
    return this.#sources.delete(id)
  }

  /** The shared instance of that name, or `undefined` where a factory or nothing stands. For listings. */
  describe (id: string): { readonly name: string, readonly description?: string } | undefined {
    const source = this.#sources.get(id)
    if (source === undefined) return undefined
    if (typeof source === 'function') return { name: id }
    return { name: source.name, ...source.description !== undefined && { description: source.description } }
  }

  /** Looks an agent up; `undefined` means that the request named none. @throws AGT_ERR_AGENT_NOT_FOUND */
  resolve (id: string | undefined): ResolvedAgent {
    const agentId = id ?? this.defaultId ?? 'default'
    const source = this.#sources.get(agentId)
    if (source === undefined) throw new AgentNotFoundError(agentId)
    if (typeof source !== 'function') return { agentId, isOwned: false, make: () => Promise.resolve(source) }
    return {
      agentId,
      isOwned: true,
      async make (request) {
        const agent = await source(request)
        if (agent === undefined || agent === null) throw new AgentNotFoundError(agentId)
        return agent
      }
    }
  }
}
