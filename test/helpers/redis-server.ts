// Starts Redis servers of its own, or uses the one that REDIS_URL names. Nothing of it listens on Redis' own port.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { type Test } from 'tap'

const URL_GIVEN = process.env['REDIS_URL']
const EXECUTABLE = (process.env['PATH'] ?? '').split(delimiter).map((path) => join(path, 'redis-server')).find((path) => existsSync(path))
const MISSING = 'there is no redis-server: apt-get install redis-server, or set REDIS_URL'

/** What a file's server has to be. */
export interface TestRedisOptions {
  /** One server in cluster mode that owns every slot. */
  readonly isCluster?: boolean
  /** Settings of its own; with any, the server of REDIS_URL is not used. */
  readonly settings?: readonly string[]
}

/** Registers a test that needs Redis. */
export type RegisterRedisTest = (name: string, body: (t: Test, redis: TestRedis) => Promise<void>) => void

/**
 * Makes the function that registers a file's tests with Redis; they share one server. Without one they are skipped by name, except in CI, where they fail.
 */
export function redisTests (t: Test, options: TestRedisOptions = {}): RegisterRedisTest {
  const isOwn = options.isCluster === true || options.settings !== undefined || URL_GIVEN === undefined
  const isMissing = isOwn && EXECUTABLE === undefined
  let redis: Promise<TestRedis> | undefined
  t.teardown(async () => { await (await redis)?.end() })
  return (name, body) => {
    t.test(name, { skip: isMissing && process.env['CI'] === undefined && MISSING }, async (t) => {
      if (isMissing) return t.fail(MISSING)
      redis ??= isOwn ? TestRedis.own(options) : Promise.resolve(TestRedis.given(URL_GIVEN as string))
      await body(t, await redis)
    })
  }
}

/** A Redis server for tests. */
export class TestRedis {
  readonly #url: string
  readonly #isCluster: boolean
  readonly #command: readonly string[]
  readonly #directory: string | undefined
  readonly #clients = new Set<Redis | Cluster>()
  #process: ChildProcess | undefined
  /** For what a test looks at, or does as an operator. */
  readonly admin: Redis

  private constructor (url: string, isCluster: boolean, command: readonly string[], directory: string | undefined) {
    this.#url = url
    this.#isCluster = isCluster
    this.#command = command
    this.#directory = directory
    this.admin = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: null, retryStrategy: () => 20 })
    this.admin.on('error', () => {}) // it tries again
  }

  static given (url: string): TestRedis {
    return new TestRedis(url, false, [], undefined)
  }

  static async own ({ isCluster = false, settings = [] }: TestRedisOptions): Promise<TestRedis> {
    const port = await freePort()
    const directory = await mkdtemp(join(tmpdir(), 'redis-'))
    const cluster = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-require-full-coverage', 'no']
    const redis = new TestRedis(`redis://127.0.0.1:${port}`, isCluster, [
      '--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', ...isCluster ? cluster : [], ...settings
    ], directory)
    await redis.start()
    if (isCluster) {
      await redis.admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
      while (!String(await redis.admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'));
    }
    return redis
  }

  get pid (): number {
    return this.#process?.pid ?? 0
  }

  get url (): string {
    return this.#url
  }

  /** Starts it, after it was killed with what it had written; resolves when it answers. */
  async start (): Promise<void> {
    this.#process = spawn(EXECUTABLE as string, this.#command, { stdio: 'ignore' })
    await this.admin.ping()
  }

  /** Ends it at once, with whatever it has not written. */
  async kill (): Promise<void> {
    if (this.#process === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }

  /** Stops it from answering, with its connections open, until it is told to go on. */
  signal (signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(signal)
  }

  /** Keeps what is on the disk now, for a `restartAsKept` later: what a machine that fails has not written yet is what came after it. */
  async keepDisk (): Promise<void> {
    // While it syncs in the background, it lets writes of appended commands wait.
    while (!(await this.admin.info('persistence')).includes('aof_buffer_length:0\r\n'));
    await cp(join(this.#home, 'appendonlydir'), join(this.#home, 'kept'), { recursive: true, force: true })
  }

  /** Kills it and starts it with what was kept. */
  async restartAsKept (): Promise<void> {
    await this.kill()
    await rm(join(this.#home, 'appendonlydir'), { recursive: true })
    await cp(join(this.#home, 'kept'), join(this.#home, 'appendonlydir'), { recursive: true })
    await this.start()
  }

  get #home (): string {
    if (this.#directory === undefined) throw new Error('The server is not our own.')
    return this.#directory
  }

  /** A client that ends with the server. */
  client (options: RedisOptions = {}): Redis {
    const client = new Redis(this.#url, options)
    this.#clients.add(client)
    return client
  }

  /** A cluster's client, or an ordinary one. */
  anyClient (options: RedisOptions = {}): Redis | Cluster {
    if (!this.#isCluster) return this.client(options)
    const { hostname, port } = new URL(this.#url)
    const client = new Cluster([{ host: hostname, port: Number(port) }])
    this.#clients.add(client)
    return client
  }

  /** Ends a client. */
  drop (client: Redis | Cluster): void {
    this.#clients.delete(client)
    client.disconnect()
  }

  /** Lets time pass for keys with a time to live, as far as they begin with `prefix`. */
  async expire (prefix: string, ms: number): Promise<void> {
    await this.admin.eval(`
      for _,key in ipairs(redis.call('KEYS',ARGV[1]..'*')) do
        local left=redis.call('PTTL',key)
        if left>=0 and left<=tonumber(ARGV[2]) then redis.call('DEL',key) elseif left>=0 then redis.call('PEXPIRE',key,left-ARGV[2]) end
      end`, 0, prefix, ms)
  }

  /** Removes the keys that begin with `prefix`. */
  async clear (prefix: string): Promise<void> {
    await this.admin.eval("for _,key in ipairs(redis.call('KEYS',ARGV[1]..'*')) do redis.call('DEL',key) end", 0, prefix)
  }

  /** Ends clients and server. */
  async end (): Promise<void> {
    for (const client of this.#clients) client.disconnect()
    this.admin.disconnect()
    await this.kill()
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true })
  }
}

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  server.close()
  await once(server, 'close')
  return port === 6379 ? await freePort() : port
}
