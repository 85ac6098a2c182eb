// A proxy that does what networks and proxies do, the same way again for the same seed.
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'

interface Teardown { teardown (fn: () => unknown): unknown }

/**
 * `refuse`: the request goes nowhere and the connection is dropped. `forget`: the server has served it, and the answer is dropped.
 * `502` and `late-502`: the same two, with a page. `truncate`: the connection is dropped in the middle of the answer. `stall`: nothing
 * more comes. `duplicate`: what a stream has brought comes again.
 */
export type Fault = 'refuse' | 'forget' | '502' | 'late-502' | 'truncate' | 'stall' | 'duplicate'

/** How bad it gets. */
export interface ChaosOptions {
  readonly seed: number
  /** Part of the requests that something happens to. @default 0.6 */
  readonly rate?: number
  /** @default all */
  readonly faults?: readonly Fault[]
  /** In a row, for one method and path: the next one is left alone. @default 3 */
  readonly maxInARow?: number
}

const ALL: readonly Fault[] = ['refuse', 'forget', '502', 'late-502', 'truncate', 'stall', 'duplicate']

/** A running proxy. */
export interface ChaosProxy {
  readonly url: string
  /** What happened, in order. */
  readonly faults: readonly Fault[]
}

/** Stands before a server on loopback, until the test ends. */
export async function chaosProxy (t: Teardown, target: { readonly port: number }, options: ChaosOptions): Promise<ChaosProxy> {
  const chaos = new Chaos(target.port, options)
  const server = createServer((request, response) => { chaos.handle(request, response).catch(() => { response.destroy() }) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    chaos.close()
    await closed
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, faults: chaos.faults }
}

class Chaos {
  readonly faults: Fault[] = []
  readonly #port: number
  readonly #options: Required<ChaosOptions>
  readonly #random: () => number
  readonly #agent = new Agent()
  readonly #inARow = new Map<string, number>()

  constructor (port: number, options: ChaosOptions) {
    this.#port = port
    this.#options = { rate: 0.6, faults: ALL, maxInARow: 3, ...options }
    this.#random = mulberry32(options.seed)
  }

  close (): void {
    this.#agent.destroy()
  }

  async handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = this.#draw(`${request.method} ${request.url?.split('?')[0]}`)
    if (fault !== undefined) this.faults.push(fault)
    if (fault === 'refuse') {
      request.socket.destroy()
      return
    }
    if (fault === '502') return badGateway(response)
    const answer = await this.#forward(request, response)
    const isStream = answer.headers['content-type'] === 'text/event-stream'
    if (fault === 'forget' || fault === 'late-502') {
      answer.destroy()
      if (fault === 'forget') request.socket.destroy()
      else badGateway(response)
      return
    }
    const { connection, 'keep-alive': keepAlive, 'transfer-encoding': encoding, ...headers } = answer.headers
    response.writeHead(answer.statusCode ?? 502, headers)
    response.flushHeaders()
    const limit = fault === 'truncate' || fault === 'stall' ? Math.floor(this.#random() * (isStream ? 3_000 : 40)) : Infinity
    let sent = 0
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      const rest = limit - sent
      if (chunk.length >= rest) {
        if (rest > 0) response.write(chunk.subarray(0, rest))
        answer.destroy()
        // A stalled connection is open until its client gives it up.
        if (fault === 'truncate') setImmediate(() => { request.socket.destroy() })
        return
      }
      sent += chunk.length
      response.write(fault === 'duplicate' && isStream ? this.#twice(chunk) : chunk)
    }
    response.end()
  }

  #draw (route: string): Fault | undefined {
    const { rate, faults, maxInARow } = this.#options
    const inARow = this.#inARow.get(route) ?? 0
    const fault = this.#random() < rate && inARow < maxInARow ? faults[Math.floor(this.#random() * faults.length)] : undefined
    this.#inARow.set(route, fault === undefined ? 0 : inARow + 1)
    return fault
  }

  async #forward (request: IncomingMessage, response: ServerResponse): Promise<IncomingMessage> {
    const { connection, ...headers } = request.headers
    const forwarded = httpRequest({ port: this.#port, host: '127.0.0.1', method: request.method, path: request.url, headers, agent: this.#agent })
    response.once('close', () => { forwarded.destroy() })
    forwarded.on('error', () => {})
    request.pipe(forwarded)
    const [answer] = await once(forwarded, 'response') as [IncomingMessage]
    answer.on('error', () => {})
    return answer
  }

  /** Whole frames are told again, at once or later on; a piece of one would be another fault. */
  #twice (chunk: Buffer): Buffer {
    const text = chunk.toString('latin1')
    if (!text.endsWith('\n\n')) return chunk
    const frames = text.slice(0, -2).split('\n\n').map((frame) => `${frame}\n\n`)
    const told = frames.flatMap((frame, index) => {
      const earlier = frames[Math.floor(this.#random() * index)]
      return [frame, ...this.#random() < 0.4 ? [frame] : [], ...this.#random() < 0.3 && earlier !== undefined ? [earlier] : []]
    })
    return Buffer.from(told.join(''), 'latin1')
  }
}

function badGateway (response: ServerResponse): void {
  response.writeHead(502, { 'content-type': 'text/html' })
  response.end('<h1>Bad gateway</h1>')
}

/** A small generator with a seed: the same numbers on every machine. */
function mulberry32 (seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
