import cors from '@fastify/cors'
import { type FastifyInstance, type FastifyPluginAsync, type FastifyReply, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { SseHub } from '../../lib/sse/index.ts'
import { hostFor } from '../agents/host.ts'
import { type AgUiOptions, resolveAgUiOptions } from './options.ts'
import { AgUiProtocol } from './protocol.ts'
import { registerRoutes } from './routes.ts'

const plugin: FastifyPluginAsync<AgUiOptions> = async (app: FastifyInstance, given: AgUiOptions) => {
  const options = resolveAgUiOptions(given)
  const host = hostFor(app, given)
  const mount = `${app.prefix}${options.base}`
  const protocol = AgUiProtocol.of(host.engine)
  protocol.mount(mount, {
    config: options.mapping,
    takesTools: options.toolMergeMode !== 'AGENT_ONLY',
    warn: (run, reason) => { app.log.warn({ runId: run.key.id, agent: run.agent, reason }, 'an event of an agent was mended or left out') }
  })
  if (options.mapping.emitRunFinishedAfterError) app.log.warn('emitRunFinishedAfterError is on: every official AG-UI client throws on RUN_FINISHED after RUN_ERROR')
  const hub = new SseHub({ ...options, observer: host.streamObserver(protocol.name) })

  // Runs first: their terminals still reach the streams, which then end by themselves.
  app.addHook('preClose', async () => {
    await host.close()
    await hub.close()
  })

  await app.register(async (scope) => {
    // The host's own CORS stands where there is one.
    if (options.cors !== undefined && !app.hasRequestDecorator('corsPreflightEnabled')) {
      if (mount !== '' && mount !== '/') scope.addHook('onRequest', refuseNeighbours)
      await scope.register(cors, options.cors)
    }
    registerRoutes(scope, { host, hub, options, protocol, mount })
  }, { prefix: options.base })
}

/** @fastify/cors answers preflights of every path that begins like the prefix; what goes on without a slash is somebody else's. */
function refuseNeighbours (request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { '*': rest = '' } = request.params as { readonly '*'?: string } // of its route, the only one for OPTIONS
  if (request.method !== 'OPTIONS' || rest === '' || rest.startsWith('/')) done()
  else reply.callNotFound()
}

/**
 * Fastify plugin that serves agents over AG-UI: `POST /run`, `/run/:agentId`, `/connect`, `/connect/:agentId` and
 * `/stop/:threadId` under `prefix` (default `/agui`). May be registered any number of times under different prefixes, with
 * the agents of `fastify-agents/agents` where that is registered, or with its own.
 */
export const agUi = fp(plugin, { name: 'fastify-agents/ag-ui', fastify: '5.x', encapsulate: true })

export { type AgUiOptions, type Concurrency, type ResolvedRuntimeContext, type RuntimeContextRequest, type RuntimeContextResolver } from './options.ts'
export { runAgentInputKey } from './context.ts'
export { type MappingOptions } from './config.ts'
export { type EventConverter, type EventEnricher, type StreamContext, withBaseProperties, basePropertiesEnricher } from './extension.ts'
export { AgUiEvent, type AgUiEventOf } from './event-schemas.ts'
export { RunAgentInput, type Message, type NormalisedInput } from './schemas.ts'
export { getTextContent } from './messages.ts'
export default agUi
