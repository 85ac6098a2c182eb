// The official clients against a server on loopback, each with what it has read and what it complained about.
import { request } from 'node:http'
import { HttpAgent as HttpAgent0057 } from 'agui-client-0057'
import { HttpAgent as HttpAgent0058 } from 'agui-client-0058'
import { HttpAgent as HttpAgent0059 } from 'agui-client-0059'
import { HttpAgent as HttpAgent1 } from 'agui-client-1'
import { checkFrames, type WireEvent } from '../../helpers/ag-ui-check.ts'
import { parseFrames } from '../../helpers/sse-client.ts'

type AnyAgent = typeof HttpAgent1
type AnyEvent = { readonly type: string } & Readonly<Record<string, unknown>>

/** One version of the official client. */
export interface LiveClient {
  readonly version: string
  readonly profile: 'legacy' | 'v1'
  /** A client of a thread that has these messages already; with `isPlatform` by the platform's fetch, whose bytes nobody sees. */
  open (url: string, threadId: string, messages?: readonly unknown[], options?: { readonly isPlatform?: boolean }): Session
}

/** Every version this project is checked against. */
export const liveClients: readonly LiveClient[] = [
  live('0.0.57', 'legacy', HttpAgent0057 as unknown as AnyAgent),
  live('0.0.58', 'legacy', HttpAgent0058 as unknown as AnyAgent),
  live('0.0.59', 'legacy', HttpAgent0059 as unknown as AnyAgent),
  live('1.0.0', 'v1', HttpAgent1)
]

function live (version: string, profile: LiveClient['profile'], Agent: AnyAgent): LiveClient {
  return { version, profile, open: (url, threadId, messages = [], options = {}) => new Session(Agent, url, threadId, messages, options.isPlatform === true) }
}

/** A client and its conversation. */
export class Session {
  readonly agent: InstanceType<AnyAgent>
  /** Events of the last run as the client passed them on. */
  events: AnyEvent[] = []
  /** RUN_ERRORs the client was told of, over all runs. */
  readonly errors: AnyEvent[] = []
  /** Everything it complained about on the console, over all runs. */
  readonly warnings: unknown[][] = []
  #raw = ''
  #onEvent: ((event: AnyEvent) => void) | undefined

  constructor (Agent: AnyAgent, url: string, threadId: string, messages: readonly unknown[], isPlatform: boolean) {
    const own = { fetch: (target: string, init: RequestInit) => this.#fetch(target, init) }
    this.agent = new Agent({ url, threadId, initialMessages: structuredClone(messages) as never, ...!isPlatform && own })
  }

  /** The transcript as the client has it, as plain JSON. */
  get messages (): unknown[] {
    return JSON.parse(JSON.stringify(this.agent.messages)) as unknown[]
  }

  /** The last run as it came off the wire, checked; a stream of snapshots has an id on its last frames alone. */
  get wire (): WireEvent[] {
    const frames = parseFrames(this.#raw)
    const from = frames.findIndex(({ id }) => id !== undefined)
    const bare = from === -1 ? frames : frames.slice(0, from)
    return [...checkFrames(bare, { ids: false, whole: false }), ...checkFrames(frames.slice(bare.length), { whole: false })]
  }

  /** Runs the agent once; resolves when the client is through with the stream. Rejects with what the client throws at it. */
  async run (parameters: Readonly<Record<string, unknown>> = {}): Promise<void> {
    this.events = []
    this.#raw = ''
    const { warn, error } = console
    console.warn = console.error = (...args: unknown[]) => { this.warnings.push(args) }
    try {
      await this.agent.runAgent(parameters as never, {
        onEvent: ({ event }) => {
          this.events.push(event as unknown as AnyEvent)
          this.#onEvent?.(event as unknown as AnyEvent)
        },
        onRunErrorEvent: ({ event }) => { this.errors.push(event as unknown as AnyEvent) }
      })
    } finally {
      Object.assign(console, { warn, error })
    }
  }

  /** Resolves as soon as the client has passed on an event that fits. */
  seen (fits: (event: AnyEvent) => boolean): Promise<void> {
    return new Promise((resolve) => { this.#onEvent = (event) => { if (fits(event)) resolve() } })
  }

  /** The platform's fetch over a connection of its own: Node 20's opens a second one after an abort. */
  #fetch (target: string, { method, headers, body, signal }: RequestInit): Promise<Response> {
    return new Promise((resolve, reject) => {
      const outgoing = request(target, { method, headers: headers as Record<string, string>, agent: false }, (incoming) => {
        incoming.setEncoding('utf8')
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => {
            incoming.on('data', (chunk: string) => {
              this.#raw += chunk
              controller.enqueue(Buffer.from(chunk))
            })
            incoming.on('end', () => { controller.close() })
            incoming.on('error', (error) => { controller.error(signal?.aborted === true ? signal.reason : error) })
          },
          cancel: () => { incoming.destroy() }
        })
        resolve(new Response(stream, { status: incoming.statusCode ?? 0, headers: incoming.headers as Record<string, string> }))
      })
      signal?.addEventListener('abort', () => { outgoing.destroy() }, { once: true })
      outgoing.once('error', reject)
      outgoing.end(body)
    })
  }
}
