import { isObject } from '../agent/index.ts'
import { type JsonValue, type Owner, type RunKey, type Signals, type Unsubscribe } from '../stores/index.ts'
import { type Cause } from './ending.ts'
import { type RunLogger } from './logger.ts'

/** Why a run is stopped from another node. */
export type RemoteCause = Extract<Cause, { kind: 'cancelled' | 'interrupted' }>

/**
 * What one node asks of another. All of it may be lost: who asks asks again at its next beat, or finds in the store what it wanted to know.
 * - `follow`, `leave`: the sender's node has readers of the run, or none any more.
 * - `stop`: end the run, which you execute.
 * - `turn`: a run of yours stands at the head of its session's queue.
 */
export type NodeMessage =
  | { readonly kind: 'follow' | 'leave', readonly run: RunKey, readonly node: string }
  | { readonly kind: 'stop', readonly run: RunKey, readonly cause: RemoteCause }
  | { readonly kind: 'turn', readonly owner: Owner, readonly session: string }

const KINDS: ReadonlySet<unknown> = new Set<NodeMessage['kind']>(['follow', 'leave', 'stop', 'turn'])

/** What a node's channel works with. */
export interface NodeChannelOptions {
  readonly signals: Signals
  readonly node: string
  readonly logger: RunLogger
  /** Must not throw. */
  onMessage (message: NodeMessage): void
}

/** How the nodes that share a store reach each other by name: one subscription a process, whatever the number of its runs (R7). */
export class NodeChannel {
  readonly #options: NodeChannelOptions
  #subscription: Promise<Unsubscribe> | undefined
  #isClosed = false

  constructor (options: NodeChannelOptions) {
    this.#options = options
  }

  /** Listens, unless it does already. What fails is tried again with the next call: call it at each beat. */
  open (): void {
    if (this.#isClosed || this.#subscription !== undefined) return
    const { signals, node, logger } = this.#options
    const subscription = this.#subscription = signals.subscribe({ kind: 'node', node }, { message: (message) => { this.#take(message) } })
    subscription.catch((error: unknown) => {
      this.#subscription = undefined
      logger.warn({ err: error }, 'this node can not be reached by others yet')
    })
  }

  /** Asks a node for something. Never rejects. */
  send (node: string, message: NodeMessage): void {
    const { signals, logger } = this.#options
    signals.publish({ kind: 'node', node }, message as unknown as JsonValue) // made of texts and numbers
      .catch((error: unknown) => { logger.debug({ err: error, kind: message.kind }, 'another node could not be asked') })
  }

  /** Listens no longer. */
  close (): void {
    this.#isClosed = true
    this.#subscription?.then((unsubscribe) => { unsubscribe() }, () => {})
    this.#subscription = undefined
  }

  #take (message: JsonValue): void {
    // A node of a later version may ask for what is not known here.
    if (isObject(message) && KINDS.has(message['kind'])) this.#options.onMessage(message as unknown as NodeMessage) // written by send()
  }
}
