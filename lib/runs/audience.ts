import { type BusEvent, type Topic } from '../bus/index.ts'
import { type JsonValue, type RunKey, type Signals } from '../stores/index.ts'
import { type Connection } from './disconnect.ts'
import { announceChange, packEvents } from './run-channel.ts'
import { type RunLogger } from './logger.ts'

/** Payload of one message at most: who needs more reads the store. */
const MAX_MESSAGE_BYTES = 256 * 1024
/** Payload on its way at most, before others are only told that there is more. */
const MAX_UNSENT_BYTES = 1024 * 1024

/** What an audience works with. */
export interface AudienceOptions {
  readonly signals: Signals
  readonly key: RunKey
  readonly topic: Topic
  readonly logger: RunLogger
  /** Milliseconds for which a node is taken to have readers, unless it says so again. */
  readonly ttlMs: number
  /** Counts a node's readers as one of the run's own (R18). */
  connect (): Connection
}

interface Member { readonly connection: Connection, until: number }

/**
 * The nodes that hold readers of a run, as its owner knows them: what was stored is sent to them (R7), and each counts as a reader
 * until it leaves or is not heard of any more.
 */
export class Audience {
  readonly #options: AudienceOptions
  readonly #members = new Map<string, Member>()
  #fence = 0
  #sent = 0
  #unsentBytes = 0
  #isBehind = false

  constructor (options: AudienceOptions) {
    this.#options = options
  }

  /** Stored under this fence from now on. */
  begin (fence: number): void {
    this.#fence = fence
    this.#sent = this.#options.topic.last
  }

  /** The node has readers, for another while. */
  join (node: string): void {
    const { topic, ttlMs, connect } = this.#options
    const until = performance.now() + ttlMs
    const known = this.#members.get(node)
    if (known !== undefined) {
      known.until = until
      return
    }
    if (this.#members.size === 0) this.#sent = topic.stored
    this.#members.set(node, { connection: connect(), until })
    // What was stored between its look at the store and now it would miss.
    this.#publish({ kind: 'stored', seq: topic.stored }, 0)
  }

  /** The node has none any more. */
  leave (node: string): void {
    const member = this.#members.get(node)
    this.#members.delete(node)
    member?.connection.close()
  }

  /** Forgets nodes that were not heard of in time; call it at each beat. */
  beat (): void {
    const now = performance.now()
    for (const [node, { until }] of this.#members) if (until <= now) this.leave(node)
  }

  /** Everything up to `seq` is stored. */
  stored (seq: number): void {
    if (this.#members.size === 0) return
    const { topic } = this.#options
    for (let block = topic.blockAfter(this.#sent); block !== undefined && block.firstSeq <= seq; block = topic.blockAfter(this.#sent)) {
      const last = Math.min(block.lastSeq, seq)
      const events: BusEvent[] = []
      let bytes = 0
      for (let at = block.firstSeq; at <= last; at++) {
        events.push(block.at(at))
        bytes += block.sizeAt(at)
      }
      this.#sent = last
      this.#send(events, bytes)
    }
    this.#sent = seq
  }

  /** The record has changed. */
  changed (): void {
    const { signals, key, logger } = this.#options
    if (this.#members.size > 0) announceChange(signals, key, logger)
  }

  /** The run is over, or another node's: nobody is counted any more. */
  end (): void {
    for (const node of [...this.#members.keys()]) this.leave(node)
  }

  #send (events: readonly BusEvent[], bytes: number): void {
    if (bytes > MAX_MESSAGE_BYTES || this.#unsentBytes > MAX_UNSENT_BYTES) {
      if (!this.#isBehind) this.#publish({ kind: 'stored', seq: this.#sent }, 0)
      this.#isBehind = this.#unsentBytes > 0
      return
    }
    this.#publish(packEvents(this.#fence, events), bytes)
  }

  #publish (message: JsonValue, bytes: number): void {
    const { signals, key, logger } = this.#options
    this.#unsentBytes += bytes
    const settle = (): void => {
      this.#unsentBytes -= bytes
      if (this.#unsentBytes > 0 || !this.#isBehind) return
      this.#isBehind = false
      this.#publish({ kind: 'stored', seq: this.#sent }, 0)
    }
    signals.publish({ kind: 'run', key }, message).then(settle, (error: unknown) => {
      // Who misses it looks into the store at its next beat.
      logger.debug({ err: error }, 'readers on other nodes could not be told')
      settle()
    })
  }
}
