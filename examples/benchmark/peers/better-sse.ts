import { type IncomingMessage, type ServerResponse } from 'node:http'
import { listenPlain } from '../node-server.ts'
import { importPackage } from '../package-import.ts'
import { drive, parsePlan } from '../pace.ts'
import { payloadOf, UNSTAMPED } from '../payload.ts'
import { type Endpoint, type Peer, type Setup, WORKLOAD_IDS } from '../peer.ts'

interface Session {
  readonly lastId: string
  push (data: unknown, event: string, id: string): void
}

interface Channel {
  readonly sessionCount: number
  register (session: Session): void
  broadcast (data: unknown, event: string, options: { eventId: string }): void
}

/** What is used of better-sse. */
interface BetterSse {
  createSession (request: IncomingMessage, response: ServerResponse, options: { keepAlive: number }): Promise<Session>
  createChannel (): Channel
}

/** better-sse on node:http: `session.push`, and a channel for the topic. Ids are given, since it makes a UUID otherwise. */
export const betterSse: Peer = {
  name: 'better-sse',
  packages: ['better-sse'],
  workloads: WORKLOAD_IDS,
  listen
}

async function listen (setup: Setup): Promise<Endpoint> {
  const { createSession, createChannel } = await importPackage<BetterSse>('better-sse')
  const options = { keepAlive: setup.heartbeatMs }
  const channel = createChannel()
  const history = Array.from({ length: setup.replayEvents }, () => payloadOf(UNSTAMPED))

  const port = await listenPlain({
    '/run': (request, response, url) => {
      createSession(request, response, options).then((session) => {
        let id = 0
        drive(parsePlan(url.searchParams),
          (stamp) => session.push(payloadOf(stamp), 'message', String(++id)),
          () => response.end())
      }).catch(fail)
    },
    '/topic': (request, response) => {
      createSession(request, response, options).then((session) => {
        channel.register(session)
        if (session.lastId === '') return
        for (let i = Number(session.lastId); i < history.length; i++) session.push(history[i], 'message', String(i + 1))
      }).catch(fail)
    }
  })

  let id = history.length
  return {
    port,
    lastEventId: '0',
    subscribers: () => channel.sessionCount,
    publish (stamp) {
      channel.broadcast(payloadOf(stamp), 'message', { eventId: String(++id) })
    }
  }
}

/** A session that cannot be made is a fault of the benchmark: end the process, which the harness tells. */
function fail (error: unknown): never {
  throw error
}
