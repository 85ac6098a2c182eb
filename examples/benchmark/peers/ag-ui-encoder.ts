import { listenPlain, STREAM_HEADERS } from '../node-server.ts'
import { importPackage } from '../package-import.ts'
import { drive, parsePlan } from '../pace.ts'
import { type Payload, payloadOf } from '../payload.ts'
import { type Endpoint, type Peer } from '../peer.ts'

/** What is used of @ag-ui/encoder. */
interface Encoder {
  readonly EventEncoder: new () => { encodeSSE (event: Payload): string }
}

/** The official encoder on node:http, one encoded event a write. It knows no topics, replay or heartbeats. */
export const agUiEncoder: Peer = {
  name: '@ag-ui/encoder',
  packages: ['@ag-ui/encoder'],
  workloads: ['W1', 'W1t', 'W2'],
  listen
}

async function listen (): Promise<Endpoint> {
  const { EventEncoder } = await importPackage<Encoder>('@ag-ui/encoder')
  const port = await listenPlain({
    '/run': (_request, response, url) => {
      const encoder = new EventEncoder()
      response.writeHead(200, STREAM_HEADERS).flushHeaders()
      drive(parsePlan(url.searchParams),
        (stamp) => response.write(encoder.encodeSSE(payloadOf(stamp))),
        () => response.end())
    }
  })
  return {
    port,
    lastEventId: '0',
    subscribers: () => 0,
    publish () { throw new Error('An encoder has no topic.') }
  }
}
