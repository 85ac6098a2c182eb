import { type DisconnectPolicy } from './spec.ts'

/** How somebody connects to a run. */
export interface ConnectOptions {
  /** Whether this is the stream of the request that started the run. @default false */
  readonly own?: boolean
  /** Called once when the engine gives the connection up because it kept the agent waiting for too long (R17); end the stream. */
  readonly onDrop?: () => void
  /** Whether it stands for readers on another node. @default false */
  readonly remote?: boolean
}

/** Somebody who reads a run. Until closed it counts as a subscriber (R18). */
export interface Connection {
  /** Counts no longer; again is harmless. */
  close (): void
}

/** What a run does when its readers come and go. */
export interface DisconnectHooks {
  /** Nobody is connected any more, and the policy's grace is over. */
  onAbandoned (): void
  /** The first reader on this node came, or the last one left. */
  onPresence? (isPresent: boolean): void
}

/**
 * Counts a run's readers and applies the policy when the last one leaves. A run that never had a reader
 * is not abandoned: its start may come without a stream.
 */
export class Connections {
  readonly #hooks: DisconnectHooks
  readonly #open = new Map<Connection, ConnectOptions>()
  #policy: DisconnectPolicy
  #local = 0
  #grace: NodeJS.Timeout | undefined
  #isOver = false

  constructor (policy: DisconnectPolicy, hooks: DisconnectHooks) {
    this.#policy = policy
    this.#hooks = hooks
  }

  /** Readers on this node, and other nodes with readers. */
  get size (): number {
    return this.#open.size
  }

  /** Readers on this node. */
  get local (): number {
    return this.#local
  }

  /** The policy from now on: each execution brings its own. */
  setPolicy (policy: DisconnectPolicy): void {
    this.#policy = policy
  }

  open (options: ConnectOptions = {}): Connection {
    const connection: Connection = { close: () => { this.#leave(connection) } }
    clearTimeout(this.#grace)
    this.#grace = undefined
    this.#open.set(connection, options)
    if (options.remote !== true && ++this.#local === 1) this.#hooks.onPresence?.(true)
    return connection
  }

  /** Gives up the caller's own streams, as if they had disconnected. */
  dropOwn (): void {
    for (const [connection, options] of [...this.#open]) {
      if (options.own !== true) continue
      options.onDrop?.()
      connection.close()
    }
  }

  /** The run is over: readers still come and go, and nothing follows from it. */
  end (): void {
    this.#isOver = true
    clearTimeout(this.#grace)
    this.#grace = undefined
  }

  #leave (connection: Connection): void {
    const options = this.#open.get(connection)
    if (options === undefined) return
    this.#open.delete(connection)
    if (options.remote !== true && --this.#local === 0) this.#hooks.onPresence?.(false)
    if (this.#open.size > 0 || this.#isOver || this.#policy === 'continue') return
    if (this.#policy === 'interrupt') this.#hooks.onAbandoned()
    else this.#grace = setTimeout(this.#expire, this.#policy.graceMs).unref()
  }

  readonly #expire = (): void => {
    this.#grace = undefined
    this.#hooks.onAbandoned()
  }
}
