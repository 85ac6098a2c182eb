// The example's server as a function, so that tests can start it as `npm start` does.
import swagger from '@fastify/swagger'
import { type TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import Fastify, { type FastifyInstance } from 'fastify'
import agUi from 'fastify-agents/ag-ui'
import agentProtocol from 'fastify-agents/agent-protocol'
import agents from 'fastify-agents/agents'
import eventStream from 'fastify-agents/event-stream'
import { type Store } from 'fastify-agents/stores'
import { createTeam, type TeamOptions } from './agents/team.ts'
import { pageRoutes } from './page-routes.ts'

export interface ServerOptions extends TeamOptions {
  /** Level of the log, `silent` for none. @default 'info' */
  readonly logLevel?: string
  /** Where runs, logs and approvals are kept; closed with the server. @default memory */
  readonly store?: Store | undefined
  /** Where the files of tasks stand; kept there. @default a temporary directory, which goes with the server */
  readonly tasksDir?: string | undefined
}

/** Builds the example's server; the caller listens and closes. */
export async function buildServer (options: ServerOptions): Promise<FastifyInstance> {
  const app = Fastify({
    logger: {
      level: options.logLevel ?? 'info',
      redact: ['req.headers.authorization', 'req.headers.cookie']
    }
  }).withTypeProvider<TypeBoxTypeProvider>()

  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'fastify-agents example', description: 'One server, every agent protocol.', version: '0.1.0' }
    }
  })

  // Last of all: what still runs is interrupted first, and that is stored.
  const { store } = options
  if (store !== undefined) app.addHook('onClose', async () => { await store.close() })

  // One registry and one run engine for every protocol that follows.
  await app.register(agents, {
    ...store !== undefined && { store },
    agents: await createTeam(options),
    defaultAgent: 'calculator',
    health: {},
    metrics: { path: '/metrics' }
  })
  // A page that was reloaded, or lost its connection, has this long to come back before its run is interrupted.
  await app.register(agUi, { enableReasoning: true, onDisconnect: { graceMs: 30_000 } })
  // `/tasks` for programs, and the classic agentprotocol.ai v1 under /ap/v1, over the same tasks.
  await app.register(agentProtocol, { ...options.tasksDir !== undefined && { workspaceRoot: options.tasksDir } })
  await app.register(eventStream)
  await app.register(pageRoutes)

  const topic = Type.Object({ topic: Type.String({ minLength: 1, maxLength: 100, pattern: '^[\\w.-]+$' }) })

  app.get('/events/:topic', {
    schema: { summary: 'Follow a topic as server-sent events', params: topic, tags: ['events'] }
  }, (request, reply) => reply.stream(request.params.topic))

  app.post('/events/:topic', {
    schema: {
      summary: 'Publish an event on a topic',
      params: topic,
      tags: ['events'],
      body: Type.Object({ event: Type.Optional(Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\r\\n\\0]+$' })), data: Type.Unknown() }),
      response: { 202: Type.Object({ seq: Type.Integer() }) }
    }
  }, async (request, reply) => {
    const seq = app.bus.publish(request.params.topic, request.body)
    return reply.code(202).send({ seq })
  })

  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())

  return app
}
