import type { Redis } from 'ioredis'
import { StoreUnavailableError } from '../errors.ts'
import { isCluster, type RedisClient } from './client.ts'

const FIRST_PAUSE_MS = 50
const LAST_PAUSE_MS = 2_000

/** Channels named in one command. */
const STEP = 500

/** Who listens on a channel. */
export interface Listener {
  message (text: string): void
  /** The connection was away and is back. */
  reset (): void
}

/** A channel with its listeners, and the connection on which it was subscribed to. */
interface Channel {
  readonly listeners: Set<Listener>
  on?: Redis
  joined?: Promise<unknown>
}

/**
 * The one connection by which this process hears all of its channels. It is made when the first channel is, of the options of the client that was
 * passed in, and made again when it breaks, as long as anybody listens; in a cluster to any node, which hears what is said on the others.
 */
export class Subscriber {
  readonly #client: RedisClient
  readonly #channels = new Map<string, Channel>()
  #connection: Redis | undefined
  #isLive = false
  #opening: Promise<Redis> | undefined
  #pauseMs = FIRST_PAUSE_MS
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor (client: RedisClient) {
    this.#client = client
  }

  /** Channels that are listened to. */
  get size (): number {
    return this.#channels.size
  }

  /** Resolves when the listener will hear everything that is said from then on. @throws AGT_ERR_STORE_UNAVAILABLE */
  async add (name: string, listener: Listener): Promise<void> {
    const channel = this.#channels.get(name) ?? { listeners: new Set<Listener>() }
    this.#channels.set(name, channel)
    channel.listeners.add(listener)
    try {
      await this.#join(name, channel, this.#isLive ? this.#connection : undefined)
    } catch (error) {
      this.remove(name, listener)
      throw new StoreUnavailableError('signals.subscribe', { cause: error })
    }
  }

  /** The listener hears nothing any more. */
  remove (name: string, listener: Listener): void {
    const channel = this.#channels.get(name)
    if (channel?.listeners.delete(listener) !== true || channel.listeners.size > 0) return
    this.#channels.delete(name)
    // A connection that broke forgets its channels by itself.
    if (this.#isLive) this.#connection?.unsubscribe(name).catch(() => {})
  }

  /** Ends the connection; nobody hears anything any more. */
  close (): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#channels.clear()
    this.#connection?.disconnect()
  }

  async #join (name: string, channel: Channel, live: Redis | undefined): Promise<void> {
    const connection = live ?? await this.#open()
    if (channel.on !== connection) {
      channel.on = connection
      channel.joined = connection.subscribe(name)
    }
    await channel.joined
  }

  /** The connection once it is there; one attempt serves all who wait for it. */
  async #open (): Promise<Redis> {
    this.#opening ??= this.#connect().finally(() => { this.#opening = undefined })
    return await this.#opening
  }

  async #connect (): Promise<Redis> {
    clearTimeout(this.#timer)
    const connection = await this.#made()
    if (this.#isClosed) throw new Error('The store is closed.')
    connection.on('error', () => {}) // an error is followed by the end
    connection.on('message', (name: string, text: string) => { this.#deliver(name, text) })
    connection.once('end', () => { this.#onEnd(connection) })
    this.#connection = connection
    await connection.connect()
    const wasAway = await this.#rejoin(connection)
    this.#isLive = true
    this.#pauseMs = FIRST_PAUSE_MS
    for (const listener of wasAway) listener.reset()
    return connection
  }

  async #made (): Promise<Redis> {
    const options = { lazyConnect: true, autoResubscribe: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: null, readOnly: false } as const
    const retryStrategy = () => null
    if (!isCluster(this.#client)) return this.#client.duplicate({ ...options, retryStrategy })
    // A cluster client knows its nodes when it has answered something.
    if (this.#client.nodes('master').length === 0) await this.#client.call('PING')
    const nodes = this.#client.nodes('master')
    const node = nodes[Math.floor(Math.random() * nodes.length)]
    if (node === undefined) throw new Error('The cluster has no node.')
    return node.duplicate({ ...options, retryStrategy })
  }

  /** Subscribes again to what was subscribed to on another connection. Returns who was listening there. */
  async #rejoin (connection: Redis): Promise<readonly Listener[]> {
    const names = [...this.#channels].filter(([, { on }]) => on !== undefined).map(([name]) => name)
    const wasAway: Listener[] = []
    for (let index = 0; index < names.length; index += STEP) {
      const step = names.slice(index, index + STEP)
      const joined = connection.subscribe(...step)
      for (const name of step) {
        const channel = this.#channels.get(name)
        if (channel === undefined) continue
        channel.on = connection
        channel.joined = joined
        wasAway.push(...channel.listeners)
      }
      await joined
    }
    return wasAway
  }

  #deliver (name: string, text: string): void {
    for (const listener of this.#channels.get(name)?.listeners ?? []) listener.message(text)
  }

  #onEnd (connection: Redis): void {
    connection.removeAllListeners('message')
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#isLive = false
    this.#retry()
  }

  #retry (): void {
    if (this.#isClosed || this.#channels.size === 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#channels.size > 0) this.#open().catch(() => { this.#retry() })
    }, this.#pauseMs).unref()
    this.#pauseMs = Math.min(this.#pauseMs * 2, LAST_PAUSE_MS)
  }
}
