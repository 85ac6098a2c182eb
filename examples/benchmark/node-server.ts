import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'

/** The headers of a stream, for peers that write their own. */
export const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no'
} as const

export type Handler = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/** Starts a plain node:http server on a free port of loopback; `routes` maps a path to its handler. */
export async function listenPlain (routes: Readonly<Record<string, Handler>>): Promise<number> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const handler = routes[url.pathname]
    if (handler === undefined) response.writeHead(404).end()
    else handler(request, response, url)
  })
  return portOf(server.listen(0, '127.0.0.1'))
}

async function portOf (server: Server): Promise<number> {
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
  return (server.address() as AddressInfo).port
}
