// What must and must not compile (checked by tsc, never run).
import { type FastifyInstance } from 'fastify'
import eventStream, { type EventStreamOptions, type StreamOptions } from 'fastify-agents/event-stream'

/** The bus, `reply.stream()` and @fastify/sse are declared by importing the plugin. */
export function routes (app: FastifyInstance): void {
  app.get<{ Params: { topic: string } }>('/:topic', (request, reply) => reply.stream(request.params.topic, { after: 'e.1', from: 'start' }))
  app.get('/sse', { sse: 'only' }, async (request, reply) => {
    await reply.sse.send(app.bus.subscribe('a', { after: reply.sse.lastEventId ?? undefined }))
  })
  app.get('/closed', async (request, reply) => await reply.stream('a').closed satisfies 'ended' | 'disconnected' | 'timeout' | 'closed')
  const seq: number = app.bus.publish('a', { event: 'created', data: { any: ['thing'] } })
  // @ts-expect-error a topic is named by a string
  app.get('/x', (request, reply) => reply.stream(seq))
  // @ts-expect-error data is never absent
  app.bus.publish('a', { event: 'created' })
  // @ts-expect-error ids are ours
  app.bus.publish('a', { id: '1', data: 1 })
}

export const start: StreamOptions = { after: { seq: 1 } }
// @ts-expect-error there is no such start
export const middle: StreamOptions = { from: 'middle' }

export const options: EventStreamOptions = { replay: { maxEvents: 10 }, heartbeatMs: 0, coalesceMs: 25 }
// @ts-expect-error the heartbeat's text is not an option here
export const text: EventStreamOptions = { heartbeat: ': x\n\n' }

export async function register (app: FastifyInstance): Promise<void> {
  await app.register(eventStream, options)
  // @ts-expect-error replay is a group of options
  await app.register(eventStream, { replay: 5 })
}
