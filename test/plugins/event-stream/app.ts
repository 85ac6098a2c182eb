import { type AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import eventStream, { type EventStreamOptions, type StreamOptions } from 'fastify-agents/event-stream'

interface Tap { teardown (fn: () => unknown): unknown }

/** A server with the plugin and every topic at `/events/:topic`, listening on loopback; it ends with the test. */
export async function buildApp (t: Tap, options: EventStreamOptions = {}, setUp?: (app: FastifyInstance) => unknown): Promise<{ app: FastifyInstance, port: number }> {
  const app = Fastify()
  await app.register(eventStream, options)
  await setUp?.(app)
  app.get<{ Params: { topic: string }, Querystring: StreamOptions }>('/events/:topic', (request, reply) =>
    reply.stream(request.params.topic, request.query))
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  return { app, port: (app.server.address() as AddressInfo).port }
}

/** Lets the event loop turn once. */
export function turn (): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve) })
}
