// CopilotKit's runtime on loopback before a server of ours, and a headless page before the runtime.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket } from 'node:net'
import { HttpAgent, type RunAgentInput } from '@ag-ui/client'
import { type TestServer } from '../../helpers/ag-ui-app.ts'
import { connect } from '../../helpers/sse-client.ts'

// Read when the runtime is loaded, so it is loaded after this.
process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true'
const { CopilotRuntime, InMemoryAgentRunner } = await import('@copilotkit/runtime/v2')
const { createCopilotNodeListener } = await import('@copilotkit/runtime/v2/node')

type AnyEvent = { readonly type: string } & Readonly<Record<string, unknown>>

/** The runtime's memory of threads, which is one for the whole process. */
export const memory = new InMemoryAgentRunner()

/** Rejoins and stops at the server, which knows a thread when the runtime was restarted or has left. */
export class ServerRunner extends InMemoryAgentRunner {
  readonly #url: string

  constructor (url: string) {
    super()
    this.#url = url
  }

  override connect ({ threadId, headers }: { threadId: string, headers?: Record<string, string> }) {
    return new HttpAgent({ url: `${this.#url}/connect`, headers }).run({ threadId } as RunAgentInput)
  }

  override async stop (request: { threadId: string, runId?: string }): Promise<boolean | undefined> {
    const answer = await fetch(`${this.#url}/stop/${encodeURIComponent(request.threadId)}`, { method: 'POST' })
    const { stopped } = await answer.json() as { stopped: boolean }
    return stopped || await super.stop(request)
  }
}

interface Teardown { teardown (fn: () => unknown): unknown }

/** A listening runtime. */
export interface Runtime {
  readonly url: string
  /** Bodies of the runs as the server got them from the runtime. */
  readonly forwarded: Record<string, unknown>[]
  /** A page that was just opened. */
  page (threadId: string, messages?: readonly unknown[]): Page
}

/** Starts the runtime before `server`. The test fails at its end if anybody complained on the console, or a connection left loopback. */
export async function serveRuntime (t: Teardown, server: TestServer, isServersRunner = false): Promise<Runtime> {
  const complaints: unknown[][] = []
  const places = new Set<string>()
  const { warn, error } = console
  console.warn = console.error = (...args: unknown[]) => { complaints.push(args) }
  const onSocket = (message: unknown): void => {
    (message as { socket: Socket }).socket.on('connectionAttempt', (ip: string) => { places.add(ip) })
  }
  // A name may be looked up for longer than the test lasts, so a request counts when it is made.
  const onRequest = (message: unknown): void => {
    places.add(new URL(String((message as { request: { origin: string | URL } }).request.origin)).hostname)
  }
  subscribe('net.client.socket', onSocket)
  subscribe('undici:request:create', onRequest)

  const root = `http://127.0.0.1:${server.port}/agui`
  const forwarded: Record<string, unknown>[] = []
  const agent = new HttpAgent({
    url: `${root}/run`,
    fetch: (url, init) => {
      forwarded.push(JSON.parse(String(init.body)) as Record<string, unknown>)
      return fetch(url, init)
    }
  })
  const runtime = new CopilotRuntime({ agents: { ours: agent }, runner: isServersRunner ? new ServerRunner(root) : new InMemoryAgentRunner() })
  const http = createServer(createCopilotNodeListener({ runtime, basePath: '/api' }))
  await new Promise<void>((resolve) => { http.listen(0, '127.0.0.1', resolve) })
  t.teardown(async () => {
    await new Promise((resolve) => { http.close(resolve) })
    unsubscribe('net.client.socket', onSocket)
    unsubscribe('undici:request:create', onRequest)
    Object.assign(console, { warn, error })
    assert.deepEqual(complaints, [], 'nobody complains')
    assert.deepEqual([...places], ['127.0.0.1'], 'nothing leaves loopback')
  })
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/api`
  return { url, forwarded, page: (threadId, messages = []) => new Page(url, threadId, messages) }
}

/** What CopilotKit's own page has: a client whose runs, rejoining and stop are the runtime's three routes. */
export class Page extends HttpAgent {
  readonly #url: string
  /** Events of the last run. */
  events: AnyEvent[] = []
  #onEvent: ((event: AnyEvent) => void) | undefined

  constructor (url: string, threadId: string, messages: readonly unknown[]) {
    super({ url: `${url}/agent/ours/run`, threadId, initialMessages: structuredClone(messages) as never })
    this.#url = url
    this.subscribe({
      onEvent: ({ event }) => {
        this.events.push(event as unknown as AnyEvent)
        this.#onEvent?.(event as unknown as AnyEvent)
      }
    })
  }

  /** Runs the agent; gives the last event. */
  async send (parameters: Readonly<Record<string, unknown>> = {}): Promise<AnyEvent | undefined> {
    this.events = []
    await this.runAgent(parameters as never)
    return this.events.at(-1)
  }

  /** Asks for what the thread has; gives the last event. */
  async rejoin (): Promise<AnyEvent | undefined> {
    this.events = []
    await this.connectAgent()
    return this.events.at(-1)
  }

  protected override connect (input: RunAgentInput) {
    return new HttpAgent({ url: `${this.#url}/agent/ours/connect` }).run(input)
  }

  /** The stop button; gives the runtime's answer. */
  async stop (): Promise<unknown> {
    const client = await connect('POST', `/api/agent/ours/stop/${this.threadId}`, { port: Number(new URL(this.#url).port), body: {} })
    return await client.json()
  }

  /** Resolves as soon as an event of this type is read. */
  seen (type: string): Promise<void> {
    return new Promise((resolve) => { this.#onEvent = (event) => { if (event.type === type) resolve() } })
  }

  /** The transcript, as plain JSON. */
  get transcript (): unknown[] {
    return JSON.parse(JSON.stringify(this.messages)) as unknown[]
  }
}
