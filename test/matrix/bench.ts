// A server with one protocol, an owner with one run, and strangers who ask for it.
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import { type Agent, type AgentEventInit } from '../../lib/agent/index.ts'
import { memoryStore, type Owner, type Store } from '../../lib/stores/index.ts'
import { agents } from '../../plugins/agents/index.ts'
import { connect, type SseClient } from '../helpers/sse-client.ts'
import { type Asked, type MatrixProtocol, type State, type Target } from './protocol.ts'

interface Teardown { teardown (fn: () => unknown): unknown }

/** An answer as its client sees it, with everything left out that is never the same twice. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Of the connection, not of the answer; or another one each second. */
const IGNORED = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding'])

/** A user as the `authorization` header names it: `ann`, or `ann@tenant`. */
function principalOf (authorization: string | undefined): { readonly id: string, readonly tenant?: string } | undefined {
  const [id = '', tenant] = (authorization ?? '').split('@')
  return id === '' ? undefined : { id, ...tenant !== undefined && { tenant } }
}

/** One server for one comparison. */
export class Bench {
  readonly app: FastifyInstance
  readonly store: Store
  readonly #protocol: MatrixProtocol
  readonly #agent: Stage

  private constructor (app: FastifyInstance, store: Store, protocol: MatrixProtocol, agent: Stage) {
    this.app = app
    this.store = store
    this.#protocol = protocol
    this.#agent = agent
  }

  static async open (t: Teardown, protocol: MatrixProtocol): Promise<Bench> {
    const app = Fastify({ forceCloseConnections: 'idle' })
    const store = memoryStore()
    const agent = new Stage()
    await app.register(agents, { agents: { agent }, store, getPrincipal: ({ headers }) => principalOf(headers.authorization), shutdownMs: 1_000 })
    await protocol.register(app)
    await app.listen({ port: 0, host: '127.0.0.1' })
    t.teardown(async () => {
      agent.release()
      await app.close()
      await store.close()
    })
    return new Bench(app, store, protocol, agent)
  }

  /** Gives the user a run of this id in that state; what others can then ask for. */
  async arrange (user: string, id: string, state: State): Promise<Target> {
    this.#agent.state = state
    const client = await this.#send(user, this.#protocol.arrange(id), 'POST')
    if (client.status !== 200) throw new Error(await client.text())
    const text = this.#protocol.isStreamed ? await (state === 'running' ? untilSecret(client) : client.text()) : await client.text()
    const cursor = /^id: (.*)$/m.exec(text.slice(0, text.lastIndexOf('\nid: ') + 1) === '' ? text : text.slice(text.lastIndexOf('\nid: ')))?.[1] ?? '2'
    const wanted = { running: 'running', waiting: 'waiting', finished: 'completed' }[state]
    while ((await this.records(user)).some((record) => record.state !== wanted)) await new Promise((resolve) => { setImmediate(resolve) })
    const [run] = await this.records(user)
    const [interrupt] = run === undefined ? [] : await this.store.interrupts.list(run.key)
    this.#agent.state = 'fresh'
    return { id, cursor, interruptId: this.#protocol.isStreamed ? interrupt?.id ?? 'call-1' : 'call-1', runId: run?.key.id ?? '' }
  }

  /** What the store holds of a user. */
  async records (user: string): Promise<Awaited<ReturnType<Store['index']['list']>>['runs']> {
    return (await this.store.index.list(principalOf(user) as Owner, { limit: 100 })).runs
  }

  /** Whether the arranged run is still left alone. */
  get isUntouched (): boolean {
    return !this.#agent.isAborted
  }

  /** The whole answer to a request that ends by itself. */
  async ask (user: string, asked: Asked, method: string, target: Target): Promise<Answer> {
    return await answerOf(await this.#send(user, asked, method), target)
  }

  /** The owner's own answer: what runs goes on to its end once it is asked for. */
  async askOwn (user: string, asked: Asked, method: string, target: Target): Promise<Answer> {
    const sent = this.#send(user, asked, method)
    const isOpen = sent.then(() => true)
    for (let turns = 0; turns < 200 && !await Promise.race([isOpen, new Promise<false>((resolve) => { setImmediate(resolve, false) })]); turns++);
    this.#agent.release()
    const client = await sent
    // A stream of what waits lasts until somebody answers, or ends it.
    for (const { key, clientId, session, state } of await this.records(user)) {
      const run = state === 'waiting' ? await this.app.agents.engine.find(key.owner, key.protocol, clientId, session) : undefined
      if (run !== undefined) await this.app.agents.engine.stop(run)
    }
    return await answerOf(client, target)
  }

  async #send (user: string, { url, body, headers }: Asked, method: string): Promise<SseClient> {
    const address = this.app.server.address()
    return await connect(method, url, {
      port: typeof address === 'object' && address !== null ? address.port : 0,
      headers: { authorization: user, ...headers },
      ...body !== undefined && method !== 'HEAD' && { body }
    })
  }
}

/** The routes that a protocol adds, as `METHOD /path`. */
export async function routesOf (protocol: MatrixProtocol): Promise<string[]> {
  const routes: string[] = []
  const app = Fastify()
  await app.register(agents, { agents: { agent: new Stage() } })
  app.addHook('onRoute', ({ method, url }: RouteOptions) => { routes.push(...[method].flat().map((name) => `${name} ${url}`)) })
  await protocol.register(app)
  await app.ready()
  await app.close()
  return routes
}

/** An agent that goes on, asks, or is over, as the test has said before. */
class Stage implements Agent {
  readonly name = 'agent'
  state: State | 'fresh' = 'fresh'
  isAborted = false
  #isReleased = false
  #wake: () => void = () => {}

  release (): void {
    this.#isReleased = true
    this.#wake()
  }

  async * stream (_input: unknown, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<AgentEventInit, void, undefined> {
    const { state } = this
    yield { type: 'TEXT_BLOCK_DELTA', replyId: 'reply', blockId: 'block', delta: state === 'fresh' ? 'nothing special' : 'a secret' }
    if (state === 'waiting') yield { type: 'REQUIRE_USER_CONFIRM', replyId: 'reply', toolCalls: [{ type: 'tool_use', id: 'call-1', name: 'pay', input: { secret: true } }] }
    if (state !== 'running') return
    const onAbort = (): void => {
      this.isAborted = true
      this.#wake()
    }
    signal.addEventListener('abort', onAbort, { once: true })
    while (!this.#isReleased && !signal.aborted) await new Promise<void>((resolve) => { this.#wake = resolve })
    signal.removeEventListener('abort', onAbort)
  }
}

async function untilSecret (client: SseClient): Promise<string> {
  await client.until(({ data }) => data?.includes('a secret') === true)
  const text = client.received
  // Its owner goes on to read, and waits for nothing.
  client.text().catch(() => {})
  return text
}

async function answerOf (client: SseClient, { id }: Target): Promise<Answer> {
  const text = await client.text()
  const headers = Object.fromEntries(Object.entries(client.headers).filter(([name]) => !IGNORED.has(name)))
  return { status: client.status, headers, body: normalised(text, id) }
}

/** The text with its ids, epochs and times made the same. */
function normalised (text: string, id: string): string {
  return text
    .replaceAll(id, 'THE-ID')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'UUID')
    .replace(/^id: [\w-]+\.(\d+)$/gm, 'id: EPOCH.$1')
    .replace(/"(timestamp|created_at|updated_at|createdAt)":\d+/g, '"$1":0')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/"req-\w+"/g, '"REQUEST"')
}
