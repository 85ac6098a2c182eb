// A server with the Agent Protocol on loopback, which ends with its test.
import Fastify, { type FastifyInstance } from 'fastify'
import { type Agent } from '../../lib/agent/index.ts'
import { memoryStore, type Store } from '../../lib/stores/index.ts'
import { agentProtocol, type AgentProtocolOptions } from '../../plugins/agent-protocol/index.ts'
import { parseTaskEvent } from '../../plugins/agent-protocol/events.ts'
import { type TaskEvent } from '../../plugins/agent-protocol/wire.ts'
import { agents, type AgentsHost, type AgentsOptions, type AgentsPluginOptions } from '../../plugins/agents/index.ts'
import { connect, type ReceivedFrame, type SseClient } from './sse-client.ts'

interface Teardown { teardown (fn: () => unknown): unknown }

/** What a test server is made of. */
export interface TaskAppOptions extends Omit<AgentProtocolOptions, 'agents' | 'store'> {
  /** One agent, or several by name. */
  readonly agent?: Agent
  readonly agents?: AgentsOptions['agents']
  readonly store?: Store
  /** Passed to the `agents` plugin. */
  readonly host?: Omit<AgentsPluginOptions, 'agents' | 'store' | 'getPrincipal'>
  /** Called before the plugins are registered. */
  readonly before?: (app: FastifyInstance) => unknown
}

/** An answer in JSON. */
export interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Readonly<Record<string, unknown>>
}

/** A line of the server's log. */
export interface LogLine { readonly level: number, readonly msg: string, readonly err?: { readonly message: string } }

/** A server that answers `inject()`. */
export interface TaskApp {
  readonly app: FastifyInstance
  readonly host: AgentsHost
  readonly store: Store
  readonly logs: readonly LogLine[]
  /** Sends a request; a body that is no text goes as JSON. */
  ask (method: 'GET' | 'POST' | 'DELETE' | 'HEAD', path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** Submits a task. */
  submit (taskId: string, more?: Readonly<Record<string, unknown>>, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** Resolves when the task has ended or waits. */
  settled (taskId: string): Promise<Answer>
}

/** Builds the server, without listening. */
export async function buildTaskApp (t: Teardown, options: TaskAppOptions): Promise<TaskApp> {
  const { agent, agents: named, store = memoryStore(), host, before, getPrincipal, ...rest } = options
  const logs: LogLine[] = []
  const app = Fastify({ logger: { level: 'info', stream: { write: (line: string) => { logs.push(JSON.parse(line) as LogLine) } } } })
  // All timers of ours are unref'ed, and inject() has no sockets.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(async () => {
    clearInterval(alive)
    await app.close()
    if (options.store === undefined) await store.close()
  })
  await before?.(app)
  await app.register(agents, {
    agents: named ?? (agent === undefined ? {} : { agent }),
    store,
    ...getPrincipal !== undefined && { getPrincipal },
    ...host
  })
  await app.register(agentProtocol, rest)
  await app.ready()
  const prefix = options.prefix ?? ''
  const ask: TaskApp['ask'] = async (method, path, body, headers = {}) => {
    const isText = typeof body === 'string'
    const response = await app.inject({
      method,
      url: `${prefix}${path}`,
      headers: { ...body !== undefined && { 'content-type': 'application/json' }, ...headers },
      ...body !== undefined && { payload: isText ? body : JSON.stringify(body) }
    })
    return { status: response.statusCode, body: response.body === '' ? {} : parse(response.body), headers: response.headers }
  }
  return {
    app,
    host: app.agents,
    store,
    logs,
    ask,
    submit: (taskId, more = {}, headers = {}) => ask('POST', '/tasks', { task_id: taskId, input: 'Hi', ...more }, headers),
    settled: (taskId) => ask('GET', `/tasks/${taskId}/wait`)
  }
}

/** A listening server. */
export interface TaskServer extends TaskApp {
  readonly port: number
  /** Opens a task's event stream; the query without its question mark. */
  events (taskId: string, query?: string, headers?: Readonly<Record<string, string>>): Promise<SseClient>
}

/** Builds the server and listens on loopback. */
export async function serveTasks (t: Teardown, options: TaskAppOptions): Promise<TaskServer> {
  const built = await buildTaskApp(t, options)
  await built.app.listen({ port: 0, host: '127.0.0.1' })
  const address = built.app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    ...built,
    port,
    events: (taskId, query = '', headers = {}) => connect('GET', `${options.prefix ?? ''}/tasks/${taskId}/events${query === '' ? '' : `?${query}`}`, { port, headers })
  }
}

/** The events of frames, in order; frames that dispatch nothing are left out. */
export function taskEvents (frames: readonly ReceivedFrame[]): TaskEvent[] {
  return frames.flatMap(({ data }) => data === undefined ? [] : [parseTaskEvent(data) ?? {}])
}

/** Types of events, for whole sequences. */
export function typesOf (events: readonly TaskEvent[]): string[] {
  return events.map(({ type }) => type ?? '')
}

/** Reads a stream up to an event that fits, and gives all of it. */
export async function eventsUntil (client: SseClient, fits: (event: TaskEvent) => boolean): Promise<TaskEvent[]> {
  return taskEvents(await client.until(({ data }) => data !== undefined && fits(parseTaskEvent(data) ?? {})))
}

function parse (text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return { text }
  }
}
