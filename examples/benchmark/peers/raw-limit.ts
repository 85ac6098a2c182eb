import { type ServerResponse } from 'node:http'
import { listenPlain, STREAM_HEADERS } from '../node-server.ts'
import { drive, parsePlan } from '../pace.ts'
import { frameOf, UNSTAMPED } from '../payload.ts'
import { type Endpoint, type Peer, type Setup, WORKLOAD_IDS } from '../peer.ts'

const FRAME = frameOf(UNSTAMPED)
const LAST_EVENT_ID = '0'
const HEARTBEAT = Buffer.from(': heartbeat\n\n')

/**
 * The anchor: node:http, one `write` of a buffer encoded ahead of time an event, backpressure ignored. A replay is one
 * write of all its frames: whoever has encoded them ahead of time would not write them one by one.
 */
export const rawLimit: Peer = {
  name: 'raw-limit',
  packages: [],
  workloads: WORKLOAD_IDS,
  listen
}

async function listen (setup: Setup): Promise<Endpoint> {
  const subscribers = new Set<ServerResponse>()
  const replay = Buffer.concat(Array.from({ length: setup.replayEvents }, (_, i) =>
    Buffer.concat([Buffer.from(`id: ${i + 1}\n`), FRAME])))

  const port = await listenPlain({
    '/run': (_request, response, url) => {
      response.writeHead(200, STREAM_HEADERS).flushHeaders()
      drive(parsePlan(url.searchParams), (stamp) => response.write(encode(stamp)), () => response.end())
    },
    '/topic': (request, response) => {
      response.writeHead(200, STREAM_HEADERS).flushHeaders()
      subscribers.add(response)
      response.on('close', () => subscribers.delete(response))
      if (request.headers['last-event-id'] === LAST_EVENT_ID) response.write(replay)
    }
  })
  setInterval(() => {
    for (const response of subscribers) response.write(HEARTBEAT)
  }, setup.heartbeatMs)

  return {
    port,
    lastEventId: LAST_EVENT_ID,
    subscribers: () => subscribers.size,
    publish (stamp) {
      const frame = encode(stamp)
      for (const response of subscribers) response.write(frame)
    }
  }
}

function encode (stamp: string): Buffer {
  return stamp === UNSTAMPED ? FRAME : frameOf(stamp)
}
