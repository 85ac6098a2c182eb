/// <reference types="@fastify/sse" preserve="true" />
// `reply.sse` and the route option `sse` are part of what this plugin adds, so its declarations bring them along.
import { fastifySSE } from '@fastify/sse'
import { type FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { EventBus } from '../../lib/bus/index.ts'
import { SseHub, type SseResponse } from '../../lib/sse/index.ts'
import { type EventStreamOptions, resolveEventStreamOptions } from './options.ts'
import { type StreamOptions, streamTopic } from './stream.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Topics of this process: publish to them, subscribe to them, stream them with `reply.stream()`. */
    bus: EventBus
  }
  interface FastifyReply {
    /**
     * Answers with a topic as an event stream: what the client has missed, then what comes. Events that are gone are told
     * by an event `gap` with `{"oldest":n}`. A HEAD gets the headers alone.
     * @throws AGT_ERR_STREAM_NOT_ACCEPTABLE (406), AGT_ERR_BUS_TOPIC_LIMIT (503), AGT_ERR_SSE_CLOSING (503), before anything is sent
     */
    stream (topic: string, options?: StreamOptions): SseResponse
  }
}

const plugin = async (app: FastifyInstance, options: EventStreamOptions): Promise<void> => {
  const resolved = resolveEventStreamOptions(options)
  const bus = new EventBus(resolved.bus)
  const hub = new SseHub(resolved.hub)
  app.decorate('bus', bus)
  app.decorateReply('stream', function (topic, options = {}) {
    return streamTopic(bus, hub, this, topic, options)
  })
  // Streams end before the server waits for their connections; who publishes may do so until his own `onClose`.
  app.addHook('preClose', async () => {
    const closed = hub.close()
    bus.endReaders() // what is no stream of ours: subscriptions, also those behind `reply.sse`
    await closed
  })
  app.addHook('onClose', async () => { bus.close() })
  if (!app.hasPlugin('@fastify/sse')) {
    await app.register(fastifySSE, { heartbeatInterval: options.heartbeatMs ?? 15_000, serializer: serialise })
  }
}

/** What `reply.sse.send()` writes for `data`: text as it is, so that a subscription's events go out as they were published. */
function serialise (data: unknown): string {
  // It splits lines at LF alone, and a CR would start a field of its own.
  return typeof data === 'string' ? data.replace(/\r\n?/g, '\n') : JSON.stringify(data)
}

/**
 * Fastify plugin for event streams of your own topics: `app.bus` and `reply.stream()`. Registers `@fastify/sse` as well,
 * unless the host has. Register it once, at the root.
 */
export const eventStream = fp(plugin, { name: 'fastify-agents/event-stream', fastify: '5.x' })

export { NotAcceptableError } from './errors.ts'
export { type EventStreamOptions } from './options.ts'
export { type StreamOptions } from './stream.ts'
export default eventStream
