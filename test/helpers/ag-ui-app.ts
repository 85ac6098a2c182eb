// A server with AG-UI on loopback, which ends with its test.
import Fastify, { type FastifyInstance } from 'fastify'
import { type Agent } from '../../lib/agent/index.ts'
import { memoryStore, type Store } from '../../lib/stores/index.ts'
import { agUi, type AgUiOptions } from '../../plugins/ag-ui/index.ts'
import { agents, type AgentsHost, type AgentsOptions, type AgentsPluginOptions } from '../../plugins/agents/index.ts'
import { checkFrames, checkOrder, type Expectation, type WireEvent } from './ag-ui-check.ts'
import { connect, type ReceivedFrame, type SseClient } from './sse-client.ts'

interface Teardown { teardown (fn: () => unknown): unknown }

/** What a test server is made of. */
export interface AppOptions extends Omit<AgUiOptions, 'agents' | 'store'> {
  /** One agent, or several by name. */
  readonly agent?: Agent
  readonly agents?: AgentsOptions['agents']
  readonly store?: Store
  /** Passed to the `agents` plugin. */
  readonly host?: Omit<AgentsPluginOptions, 'agents' | 'store' | 'getPrincipal'>
  /** Called before the plugins are registered. */
  readonly before?: (app: FastifyInstance) => unknown
  /** Called after them: for other protocols beside. */
  readonly beside?: (app: FastifyInstance) => unknown
}

/** Changes to the request that {@link TestServer.run} sends. */
export interface RequestOptions {
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A line of the server's log. */
export interface LogLine { readonly level: number, readonly msg: string, readonly err?: { readonly message: string } }

/** A listening server. */
export interface TestServer {
  readonly app: FastifyInstance
  readonly port: number
  readonly host: AgentsHost
  readonly store: Store
  /** Everything logged so far; 40 = warn, 50 = error. */
  readonly logs: readonly LogLine[]
  /** Starts a run; members of `input` are laid over a minimal request. */
  run (input?: Readonly<Record<string, unknown>>, options?: RequestOptions): Promise<SseClient>
  /** Rejoins a thread. */
  rejoin (input: Readonly<Record<string, unknown>>, lastEventId?: string, options?: RequestOptions): Promise<SseClient>
  /** Stops a thread; resolves with the answer's status and body. */
  stop (threadId: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<{ readonly status: number, readonly body: unknown }>
  /** Ids of all runs in the store, of the anonymous owner. */
  runIds (): Promise<string[]>
}

/** The smallest request, of a client that speaks 1.0. */
export function request (input: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { threadId: 'thread', runId: 'run', protocolVersion: '1.0', messages: [{ id: 'u1', role: 'user', content: 'Hi' }], ...input }
}

/** Builds the server, without listening. */
export async function buildApp (t: Teardown, options: AppOptions): Promise<Omit<TestServer, 'port' | 'run' | 'rejoin' | 'stop'>> {
  const { agent, agents: named, store = memoryStore(), host, before, beside, getPrincipal, ...rest } = options
  const logs: LogLine[] = []
  const app = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { logs.push(JSON.parse(line) as LogLine) } } } })
  t.teardown(async () => {
    await app.close()
    await store.close()
  })
  await before?.(app)
  await app.register(agents, {
    agents: named ?? (agent === undefined ? {} : { agent }),
    store,
    ...getPrincipal !== undefined && { getPrincipal },
    ...host
  })
  await app.register(agUi, rest)
  await beside?.(app)
  await app.ready()
  return {
    app,
    host: app.agents,
    store,
    logs,
    runIds: async () => (await store.index.list({}, { protocol: 'ag-ui', limit: 1_000 })).runs.map(({ clientId }) => clientId)
  }
}

/** Builds the server and listens on loopback. */
export async function serveApp (t: Teardown, options: AppOptions): Promise<TestServer> {
  const built = await buildApp(t, options)
  const { app } = built
  await app.listen({ port: 0, host: '127.0.0.1' })
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const prefix = options.prefix ?? '/agui'
  return {
    ...built,
    port,
    run: (input = {}, { path = `${prefix}/run`, headers = {} } = {}) => connect('POST', path, { port, headers, body: request(input) }),
    rejoin: (input, lastEventId, { path = `${prefix}/connect`, headers = {} } = {}) => connect('POST', path, {
      port, headers: { ...headers, ...lastEventId !== undefined && { 'last-event-id': lastEventId } }, body: input
    }),
    async stop (threadId, body, headers = {}) {
      const client = await connect('POST', `${prefix}/stop/${encodeURIComponent(threadId)}`, { port, headers, ...body !== undefined && { body } })
      return { status: client.status, body: await client.json() }
    }
  }
}

/** Reads a stream to its end, checks every event, and gives them. */
export async function eventsOf (client: SseClient, expectation?: Expectation): Promise<WireEvent[]> {
  return checkFrames(await client.rest(), expectation)
}

/** Reads a stream that begins with a snapshot: only its last frame has an id, and what follows goes on from there. */
export async function snapshotOf (client: SseClient): Promise<WireEvent[]> {
  const frames = await client.rest()
  const first = frames.findIndex(({ id }) => id !== undefined)
  const events = [...checkFrames(frames.slice(0, first), { ids: false, whole: false }), ...checkFrames(frames.slice(first), { whole: false })]
  checkOrder(events)
  return events
}

/** Reads a stream up to an event that fits; nothing is checked but the frames' shape. */
export async function readUntil (client: SseClient, fits: (event: WireEvent) => boolean): Promise<ReceivedFrame[]> {
  return await client.until(({ data }) => data !== undefined && fits(JSON.parse(data) as WireEvent))
}
