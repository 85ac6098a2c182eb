import { type FastifyPluginAsync, type FastifyReply } from 'fastify'
import { createApp, listenApp, planOf } from '../fastify-server.ts'
import { importPackage } from '../package-import.ts'
import { drive } from '../pace.ts'
import { payloadOf, UNSTAMPED } from '../payload.ts'
import { type Endpoint, type Peer, type Setup, WORKLOAD_IDS } from '../peer.ts'

interface Message {
  readonly id?: string
  readonly data?: string
  readonly comment?: string
}

/** What is used of a reply that fastify-sse-v2 has decorated. */
interface SseReply {
  sse (message: Message | AsyncIterable<Message>): void
  readonly sseContext: { readonly source: { end (): void } }
}

/** fastify-sse-v2: events are pushed one by one; it has no heartbeat, so the server comments on a timer. */
export const fastifySseV2: Peer = {
  name: 'fastify-sse-v2',
  packages: ['fastify-sse-v2'],
  workloads: WORKLOAD_IDS,
  listen
}

async function listen (setup: Setup): Promise<Endpoint> {
  const app = createApp()
  const plugin = await importPackage<{ FastifySSEPlugin: FastifyPluginAsync }>('fastify-sse-v2')
  await app.register(plugin.FastifySSEPlugin)

  const subscribers = new Set<SseReply>()
  const history = Array.from({ length: setup.replayEvents }, (_, i) =>
    ({ id: String(i + 1), data: JSON.stringify(payloadOf(UNSTAMPED)) }))

  app.get('/run', (request, reply) => {
    const stream = sseOf(reply)
    let id = 0
    drive(planOf(request),
      (stamp) => stream.sse({ id: String(++id), data: JSON.stringify(payloadOf(stamp)) }),
      () => stream.sseContext.source.end())
  })
  app.get('/topic', (request, reply) => {
    const stream = sseOf(reply)
    stream.sse({ comment: 'open' })
    subscribers.add(stream)
    reply.raw.on('close', () => subscribers.delete(stream))
    const after = request.headers['last-event-id']
    if (after === undefined) return
    for (const message of history.slice(Number(after))) stream.sse(message)
  })
  setInterval(() => {
    for (const stream of subscribers) stream.sse({ comment: 'heartbeat' })
  }, setup.heartbeatMs)

  let id = history.length
  return {
    port: await listenApp(app),
    lastEventId: '0',
    subscribers: () => subscribers.size,
    publish (stamp) {
      const message = { id: String(++id), data: JSON.stringify(payloadOf(stamp)) }
      for (const stream of subscribers) stream.sse(message)
    }
  }
}

/** The plugin's own types exist only where it is installed. */
function sseOf (reply: FastifyReply): SseReply {
  return reply as unknown as SseReply
}
