import { type FastifyInstance, type FastifyPluginAsync, type FastifyReply } from 'fastify'
import { createApp, listenApp, planOf } from '../fastify-server.ts'
import { importPackage } from '../package-import.ts'
import { feed } from '../pace.ts'
import { payloadOf, UNSTAMPED } from '../payload.ts'
import { type Endpoint, type Peer, type Setup, WORKLOAD_IDS } from '../peer.ts'

interface Message {
  readonly id?: string | number
  readonly data: unknown
}

/** What is used of `reply.sse`. */
interface SseReply {
  send (message: Message): Promise<void>
  keepAlive (): void
  replay (callback: (lastEventId: string) => Promise<void>): Promise<void>
  onClose (callback: () => void): void
}

/** @fastify/sse: each `send` is awaited, as its documentation shows. */
export const fastifySse: Peer = {
  name: '@fastify/sse',
  packages: ['@fastify/sse'],
  workloads: WORKLOAD_IDS,
  listen
}

async function listen (setup: Setup): Promise<Endpoint> {
  const app = createApp()
  const plugin = await importPackage<{ default: FastifyPluginAsync<{ heartbeatInterval: number }> }>('@fastify/sse')
  await app.register(plugin.default, { heartbeatInterval: setup.heartbeatMs })

  const subscribers = new Set<SseReply>()
  const history = Array.from({ length: setup.replayEvents }, (_, i) => ({ id: i + 1, data: payloadOf(UNSTAMPED) }))

  route(app, '/run', async (sse, request) => {
    let id = 0
    await feed(planOf(request), (stamp) => sse.send({ id: ++id, data: payloadOf(stamp) }))
  })
  route(app, '/topic', async (sse) => {
    sse.keepAlive()
    // Its headers go out with the first write, so there is one.
    await sse.send({ data: 'open' })
    subscribers.add(sse)
    sse.onClose(() => subscribers.delete(sse))
    await sse.replay(async (after) => {
      for (const message of history.slice(Number(after))) await sse.send(message)
    })
  })

  let id = history.length
  return {
    port: await listenApp(app),
    lastEventId: '0',
    subscribers: () => subscribers.size,
    async publish (stamp) {
      const message = { id: ++id, data: payloadOf(stamp) }
      await Promise.all(Array.from(subscribers, (sse) => sse.send(message)))
    }
  }
}

function route (app: FastifyInstance, url: string, handler: (sse: SseReply, request: Parameters<typeof planOf>[0]) => Promise<void>): void {
  const options = { method: 'GET' as const, url, sse: 'only' as const }
  app.route({ ...options, handler: (request, reply) => handler(sseOf(reply), request) })
}

/** The plugin's own types exist only where it is installed. */
function sseOf (reply: FastifyReply): SseReply {
  return (reply as unknown as { readonly sse: SseReply }).sse
}
