import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type OutgoingHttpHeader, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'
import { SseHub, type SseReply, type SseResponse } from '../../lib/sse/index.ts'

interface Teardown { teardown (fn: () => unknown): unknown }

/** A reply as Fastify has it, over node's own server: for tests of streams that need no Fastify. */
export interface TestReply extends SseReply {
  readonly raw: ServerResponse
  readonly request: { readonly method: string, readonly raw: IncomingMessage, readonly url: string }
  isHijacked: boolean
}

/** Starts a server on loopback that ends with the test; the handler gets a reply that carries these headers. */
export async function serve (
  t: Teardown,
  handler: (reply: TestReply) => unknown,
  headers: Record<string, OutgoingHttpHeader | undefined> = {}
): Promise<{ readonly port: number, readonly server: Server }> {
  const server = createServer((request, raw) => {
    const reply: TestReply = {
      raw,
      request: { method: request.method ?? '', raw: request, url: request.url ?? '' },
      isHijacked: false,
      getHeaders: () => ({ ...raw.getHeaders(), ...headers }),
      hijack () { this.isHijacked = true }
    }
    handler(reply)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    await closed
  })
  return { port: (server.address() as AddressInfo).port, server }
}

/** A promise and its ends, for a test that waits for a callback. */
export function deferred<T> (): { readonly promise: Promise<T>, resolve (value: T): void } {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((_resolve) => { resolve = _resolve })
  return { promise, resolve }
}

/** A server that opens a stream for every request and hands it to the test. */
export async function streams (t: Teardown, hub = new SseHub(), headers: Record<string, OutgoingHttpHeader | undefined> = {}): Promise<{
  readonly port: number
  readonly hub: SseHub
  next (): Promise<{ readonly response: SseResponse, readonly reply: TestReply }>
}> {
  const opened: Array<{ response: SseResponse, reply: TestReply }> = []
  const events = new EventEmitter()
  const { port } = await serve(t, (reply) => {
    opened.push({ response: hub.open(reply), reply })
    events.emit('open')
  }, headers)
  return {
    port,
    hub,
    async next () {
      if (opened.length === 0) await once(events, 'open')
      return opened.shift() as { response: SseResponse, reply: TestReply }
    }
  }
}
