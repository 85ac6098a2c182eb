import { type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { addHealthRoutes } from './health.ts'
import { createHost, type AgentsHost } from './host.ts'
import { loadWatchers } from './load-watchers.ts'
import { type AgentsPluginOptions, resolveAgentsOptions, resolvePluginOptions } from './options.ts'
import { watchTogether } from './watcher.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registry, run engine and store that the protocol plugins of this server share. */
    agents: AgentsHost
  }
}

const plugin: FastifyPluginAsync<AgentsPluginOptions> = async (app: FastifyInstance, options: AgentsPluginOptions) => {
  const own = resolvePluginOptions(options)
  const watchers = await loadWatchers(own)
  const host = createHost(app, options, watchTogether(watchers))
  app.decorate('agents', host)
  for (const watcher of watchers) watcher.attach(app, host)
  if (own.health !== undefined) addHealthRoutes(app, host, own.health, resolveAgentsOptions(options).storeTimeoutMs)
}

/**
 * Fastify plugin that decorates the server with `app.agents`: one registry, one run engine and one store for all protocol
 * plugins registered after it. Register it once. Protocol plugins work without it, each with an engine of its own.
 */
export const agents = fp(plugin, { name: 'fastify-agents/agents', fastify: '5.x' })

export { AgentsHost, ownerOf } from './host.ts'
export { AgentRegistry, type AgentFactory, type AgentRequest, type AgentSource, type Principal, type ResolvedAgent } from './registry.ts'
export { type AgentsOptions, type AgentsPluginOptions, type GetPrincipal, type LimitOptions } from './options.ts'
export { type HealthPaths } from './health.ts'
export { AgentNotFoundError, MissingPackageError, StreamLimitError, UnauthenticatedError } from './errors.ts'
export { retryAfterOf } from './retry-after.ts'
export default agents
