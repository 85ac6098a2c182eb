import { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { createHost, type AgentsHost } from './host.ts'
import { type AgentsOptions } from './options.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registry, run engine and store that the protocol plugins of this server share. */
    agents: AgentsHost
  }
}

const plugin: FastifyPluginAsync<AgentsOptions> = async (app: FastifyInstance, options: AgentsOptions) => {
  app.decorate('agents', createHost(app, options))
}

/**
 * Fastify plugin that decorates the server with `app.agents`: one registry, one run engine and one store for all protocol
 * plugins registered after it. Register it once. Protocol plugins work without it, each with an engine of its own.
 */
export const agents = fp(plugin, { name: 'fastify-agents/agents', fastify: '5.x' })

export { AgentsHost, ownerOf } from './host.ts'
export { AgentRegistry, type AgentFactory, type AgentRequest, type AgentSource, type Principal, type ResolvedAgent } from './registry.ts'
export { type AgentsOptions, type GetPrincipal } from './options.ts'
export { AgentNotFoundError, UnauthenticatedError } from './errors.ts'
export default agents
