import type { Redis } from 'ioredis'
import { StoreUnavailableError } from '../errors.ts'
import type { OperationName } from '../operations.ts'
import { isCluster, type RedisClient } from './client.ts'
import { Gathering } from './gathering.ts'
import type { Script } from './script.ts'

/** An argument of a command. */
export type Argument = string | number | Buffer

/**
 * The store's way to Redis. It counts what waits for an answer, so that a server that is gone or hangs is never waited for without
 * limit, and makes every failure a coded one.
 */
export class Connection {
  readonly #client: RedisClient
  readonly #maxPending: number
  readonly #skewMs: () => number
  readonly #gathering: Gathering
  #pending = 0
  #publisher: Redis | undefined

  constructor (client: RedisClient, maxPending: number, skewMs: () => number) {
    this.#client = client
    this.#maxPending = maxPending
    this.#skewMs = skewMs
    this.#gathering = new Gathering(client)
  }

  /** Commands that wait for an answer. */
  get pending (): number {
    return this.#pending
  }

  /** Sends one command. @throws AGT_ERR_STORE_UNAVAILABLE */
  async command (operation: OperationName, name: string, ...args: readonly Argument[]): Promise<unknown> {
    return await this.#send(operation, this.#client, name, args)
  }

  /** Publishes; what one process says on one channel arrives in order. @throws AGT_ERR_STORE_UNAVAILABLE */
  async publish (channel: string, message: string): Promise<void> {
    await this.#send('signals.publish', this.#publishing(), 'PUBLISH', [channel, message])
  }

  /** Runs a script that asks for no time. @throws AGT_ERR_STORE_UNAVAILABLE */
  async run (operation: OperationName, script: Script, keys: readonly string[], ...args: readonly Argument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await this.#send(operation, this.#client, 'EVALSHA', [script.sha, ...rest])
    } catch (error) {
      // A server that was restarted, or whose scripts were flushed, has forgotten it.
      if (!isUnknownScript(error)) throw error
      return await this.#send(operation, this.#client, 'EVAL', [script.text, ...rest])
    }
  }

  /** Runs a script that asks Redis for the time (`scripts/clock.ts`): its first argument is what tests add to it. */
  async runTimed (operation: OperationName, script: Script, keys: readonly string[], ...args: readonly Argument[]): Promise<unknown> {
    return await this.run(operation, script, keys, this.#skewMs(), ...args)
  }

  /** In a cluster a message reaches every node from any of them, and would overtake another one if they took different ways. */
  #publishing (): RedisClient {
    if (!isCluster(this.#client)) return this.#client
    const nodes = this.#client.nodes('master')
    if (this.#publisher === undefined || this.#publisher.status !== 'ready' || !nodes.includes(this.#publisher)) {
      this.#publisher = nodes.find(({ status }) => status === 'ready') ?? nodes[0]
    }
    return this.#publisher ?? this.#client
  }

  async #send (operation: OperationName, client: RedisClient, name: string, args: readonly Argument[]): Promise<unknown> {
    if (this.#pending >= this.#maxPending) {
      throw new StoreUnavailableError(operation, { cause: new Error(`${this.#pending} commands wait for Redis`) })
    }
    this.#pending++
    this.#gathering.begin()
    try {
      return await client.call(name, ...args)
    } catch (error) {
      throw new StoreUnavailableError(operation, { cause: error })
    } finally {
      this.#pending--
    }
  }
}

function isUnknownScript (error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Error && error.cause.message.startsWith('NOSCRIPT')
}
