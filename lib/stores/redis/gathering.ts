import { isCluster, type RedisClient } from './client.ts'

/**
 * Lets what is sent to Redis in one turn of the event loop leave in one write: a write for each command costs more than the
 * command itself, and many runs have something to store in each turn.
 */
export class Gathering {
  readonly #client: RedisClient
  #isOn = false

  constructor (client: RedisClient) {
    this.#client = client
  }

  /** Holds back what is sent from now on until the turn is over. */
  begin (): void {
    if (this.#isOn) return
    this.#isOn = true
    const client = this.#client
    const streams = (isCluster(client) ? client.nodes('master') : [client]).map(({ stream }) => stream)
    // There is none before the first connection.
    for (const stream of streams) stream?.cork()
    setImmediate(() => {
      this.#isOn = false
      for (const stream of streams) stream?.uncork()
    })
  }
}
