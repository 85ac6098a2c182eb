import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Test } from 'tap'
import { type AgentsPluginOptions } from '../../plugins/agents/index.ts'
import { LineChild } from '../helpers/line-child.ts'
import { redisTests, type TestRedis, type TestRedisOptions } from '../helpers/redis-server.ts'
import { transpiled } from '../helpers/transpiled.ts'
import { connect, type ReceivedFrame, type SseClient } from '../helpers/sse-client.ts'

const SCRIPT = new URL('node-server.ts', import.meta.url)

/** What a node is started with. */
export interface NodeSettings {
  readonly redis: string
  /** Of all keys. */
  readonly prefix: string
  /** The file in which the tool writes. */
  readonly journal: string
  /** Options of the `agents` plugin, as far as they are JSON. */
  readonly host?: Pick<AgentsPluginOptions, 'leaseMs' | 'storeTimeoutMs' | 'shutdownMs' | 'onShutdown'>
  /** Milliseconds for a command, of the client itself. @default none */
  readonly commandTimeoutMs?: number
}

/** Milliseconds a run belongs to its node in these tests. */
export const LEASE_MS = 1_500

/** An event of a stream with the position it has. */
export interface SeenEvent {
  readonly id: string | undefined
  readonly type: string
  /** What is said, in AG-UI. */
  readonly delta?: string
  /** The same, of a task. */
  readonly text?: string
  readonly [member: string]: unknown
}

/** One of the servers that share a Redis: a process of its own, spoken to over sockets. */
export class ServerNode {
  readonly #child: LineChild
  readonly port: number

  private constructor (child: LineChild, port: number) {
    this.#child = child
    this.port = port
  }

  static async start (t: Test, compiled: URL, settings: NodeSettings): Promise<ServerNode> {
    const child = new LineChild(t, compiled, [JSON.stringify(settings)])
    return new ServerNode(child, Number(await child.line()))
  }

  /** Starts a run on `thread`, of the same name, and gives the caller's own stream. */
  async run (thread: string, content: string, more: Readonly<Record<string, unknown>> = {}): Promise<SseClient> {
    const body = { threadId: thread, runId: `run-${thread}`, protocolVersion: '1.0', messages: [{ id: `m-${thread}`, role: 'user', content }], ...more }
    return await connect('POST', '/agui/run', { port: this.port, body })
  }

  /** Joins a thread. */
  async join (thread: string, lastEventId?: string): Promise<SseClient> {
    return await connect('POST', '/agui/connect', {
      port: this.port, body: { threadId: thread }, headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    })
  }

  /** Asks for JSON. */
  async ask (method: string, path: string, body?: unknown): Promise<{ readonly status: number, readonly body: unknown }> {
    const client = await connect(method, path, { port: this.port, ...body !== undefined && { body } })
    const text = await client.text()
    return { status: client.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  /** What it says until it has ended, after it was asked to. */
  async terminate (): Promise<string> {
    this.signal('SIGTERM')
    return await this.#child.line()
  }

  signal (signal: NodeJS.Signals): void {
    this.#child.process.kill(signal)
  }

  async kill (): Promise<void> {
    await this.#child.kill()
  }
}

/** Servers on one Redis, with nothing in it when they started. */
export interface Nodes {
  readonly a: ServerNode
  readonly b: ServerNode
  readonly redis: TestRedis
  /** One more server like them. */
  another (): Promise<ServerNode>
  /** Lines that the tool has written, on whatever node. */
  journal (): Promise<string[]>
}

/** Registers a test with two servers; `host` are options of both. */
export type RegisterNodesTest = (name: string, body: (t: Test, nodes: Nodes) => Promise<void>, host?: NodeSettings['host']) => void

/** Makes the function that registers a file's tests with two servers of their own on the Redis that the file has. */
export function nodesTests (t: Test, options: TestRedisOptions = {}): RegisterNodesTest {
  const test = redisTests(t, options)
  let compiled: Promise<URL> | undefined
  return (name, body, host = {}) => {
    test(name, async (st, redis) => {
      const folder = await mkdtemp(join(tmpdir(), 'nodes-'))
      const settings: NodeSettings = { redis: redis.url, prefix: `${basename(folder)}:`, journal: join(folder, 'journal'), host }
      const script = await (compiled ??= transpiled(t, SCRIPT))
      const another = () => ServerNode.start(st, script, settings)
      const [a, b] = await Promise.all([another(), another()])
      await body(st, {
        a, b, redis, another, journal: async () => (await readFile(settings.journal, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')
      })
      await rm(folder, { recursive: true })
    })
  }
}

/** Events of frames; heartbeats are left out. */
export function eventsIn (frames: readonly ReceivedFrame[]): SeenEvent[] {
  return frames.flatMap(({ id, data }) => data === undefined ? [] : [{ ...JSON.parse(data) as { type: string }, id }])
}

/** All that is still to come on a stream. */
export async function restOf (client: SseClient): Promise<SeenEvent[]> {
  return eventsIn(await client.rest())
}

/** Reads a stream until it has said `text`. */
export async function untilSaid (client: SseClient, text: string): Promise<SeenEvent[]> {
  return eventsIn(await client.until(({ data }) => data !== undefined && saidIn([JSON.parse(data) as SeenEvent]) === text))
}

/** The numbers in cursors (`<epoch>.<number>`, or the number alone). */
export function numbersOf (events: readonly SeenEvent[]): number[] {
  return events.map(({ id = '' }) => Number(id.slice(id.lastIndexOf('.') + 1)))
}

/** `count` numbers from `first` on. */
export function range (first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}

/** What was said, in one text. */
export function saidIn (events: readonly SeenEvent[]): string {
  return events.map(({ delta, text }) => delta ?? text ?? '').join('')
}
