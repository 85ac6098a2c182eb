import eventStream from '../../../plugins/event-stream/index.ts'
import { createApp, listenApp, planOf } from '../fastify-server.ts'
import { drive } from '../pace.ts'
import { payloadOf, UNSTAMPED } from '../payload.ts'
import { type Endpoint, type Peer, type Setup, WORKLOAD_IDS } from '../peer.ts'

/** Our event-stream plugin on Fastify: `app.bus.publish()` per event, `reply.stream()` per subscriber, defaults otherwise. */
export const eventStreamPeer: Peer = {
  name: 'event-stream',
  packages: [],
  workloads: WORKLOAD_IDS,
  listen
}

const TOPIC = 'bench'

async function listen (setup: Setup): Promise<Endpoint> {
  const app = createApp()
  await app.register(eventStream, { heartbeatMs: setup.heartbeatMs })
  const { bus } = app
  for (let i = 0; i < setup.replayEvents; i++) bus.publish(TOPIC, { data: payloadOf(UNSTAMPED) })

  let runs = 0
  app.get('/run', (request, reply) => {
    const plan = planOf(request)
    const key = `run-${++runs}`
    // A topic of its own that keeps the whole run: a burst in one tick is ahead of every socket.
    const topic = bus.topic(key, { replay: { maxEvents: plan.events, ttlMs: 0 } })
    reply.stream(key, { from: 'start' })
    drive(plan,
      (stamp) => { bus.publish(key, { data: payloadOf(stamp) }) },
      () => topic.end())
  })
  app.get('/topic', (_request, reply) => { reply.stream(TOPIC) })

  return {
    port: await listenApp(app),
    lastEventId: `${bus.topic(TOPIC, { lifetime: 'use' }).epoch}.0`,
    subscribers: () => bus.find(TOPIC)?.readers ?? 0,
    publish (stamp) {
      bus.publish(TOPIC, { data: payloadOf(stamp) })
    }
  }
}
