import { type JsonValue, type LogEvent, type Presence, type RunKey, type SignalHandler, type Signals, type Unsubscribe } from '../stores/index.ts'
import { type RunLogger } from './logger.ts'
import { type NodeChannel } from './node-channel.ts'
import { type Run } from './run.ts'
import { readRunMessage } from './run-channel.ts'

/** A run that somebody reads here and another node executes, or may execute next. */
export interface Followed extends Run {
  /** Takes what another node has stored; false where it does not go on from what is here. */
  take (fence: number, events: readonly LogEvent[]): boolean
  /** It is at hand as `run` now: whoever waits for this one waits for that. */
  forward (run: Run): void
}

/** What following works with. */
export interface FollowingOptions {
  readonly signals: Signals
  readonly presence: Presence
  readonly channel: NodeChannel
  readonly node: string
  readonly logger: RunLogger
  /** Milliseconds for which this node counts as one with readers; renewed at each beat. */
  readonly ttlMs: number
  /** Milliseconds without a look into the store after which readers are sent away with their cursor: what is stored may be told elsewhere. */
  readonly patienceMs: number
  /** Brings the run up to what the store holds, whoever has written it, and gives it as it is at hand then; undefined when it is gone. */
  sync (key: RunKey): Promise<Run | undefined>
}

/** The runs of other nodes that are read here: each is listened to while it has readers, and looked up at each beat besides (R7, R18). */
export class Following {
  readonly #options: FollowingOptions
  readonly #active = new Set<Follower>()

  constructor (options: FollowingOptions) {
    this.#options = options
  }

  /** A follower of the run; it does nothing before it is started. */
  of (run: Followed): Follower {
    return new Follower(this.#options, run, this.#active)
  }

  /** Says again that this node has readers, and looks for what may have been missed. */
  beat (): void {
    for (const follower of this.#active) follower.beat()
  }

  /** Ends all of it. */
  close (): void {
    for (const follower of [...this.#active]) follower.stop()
  }
}

/** Keeps one run up to date while it has readers here. */
export class Follower implements SignalHandler {
  readonly #options: FollowingOptions
  readonly #run: Followed
  readonly #active: Set<Follower>
  #subscription: Promise<Unsubscribe> | undefined
  #syncing: Promise<void> | undefined
  #isDue = false
  /** Since when the store could not be looked into. */
  #blindSince: number | undefined

  constructor (options: FollowingOptions, run: Followed, active: Set<Follower>) {
    this.#options = options
    this.#run = run
    this.#active = active
  }

  /** Somebody reads the run. Again is harmless. */
  start (): void {
    if (this.#active.has(this)) return
    this.#active.add(this)
    this.#join()
  }

  /** Nobody does any more, or it goes on here. Again is harmless. */
  stop (): void {
    if (!this.#active.delete(this)) return
    const { presence, channel, node, logger } = this.#options
    const { key, node: owner } = this.#run.record
    this.#subscription?.then((unsubscribe) => { unsubscribe() }, () => {})
    this.#subscription = undefined
    presence.leave(key, node).catch((error: unknown) => { logger.debug({ err: error }, 'a presence entry is left to run out') })
    if (owner !== node) channel.send(owner, { kind: 'leave', run: key, node })
  }

  beat (): void {
    this.#join()
  }

  message (message: JsonValue): void {
    const read = readRunMessage(message)
    switch (read?.kind) {
      case undefined: break
      case 'events': if (!this.#run.take(read.fence, read.events)) this.#look(); break
      case 'stored': if (read.seq > this.#run.topic.last) this.#look(); break
      case 'record': this.#look()
    }
  }

  /** Messages may have been missed. */
  reset (): void {
    this.#look()
  }

  /** Listens first, and looks into the store then: nothing falls between the two. */
  async #join (): Promise<void> {
    const { signals, presence, channel, node, ttlMs, logger } = this.#options
    const { key } = this.#run.record
    const subscription = this.#subscription ??= signals.subscribe({ kind: 'run', key }, this)
    try {
      const [unsubscribe] = await Promise.all([subscription, presence.enter(key, node, ttlMs)])
      if (!this.#active.has(this)) {
        unsubscribe()
        await presence.leave(key, node)
        return
      }
    } catch (error) {
      if (this.#subscription === subscription) subscription.catch(() => { this.#subscription = undefined })
      logger.debug({ err: error, runId: key.id }, 'a run of another node can not be followed yet')
    }
    const { node: owner } = this.#run.record
    if (owner !== node) channel.send(owner, { kind: 'follow', run: key, node })
    this.#look()
  }

  /** One look at a time; what comes meanwhile makes for another. */
  #look (): void {
    this.#isDue = true
    this.#syncing ??= this.#sync().finally(() => { this.#syncing = undefined })
  }

  async #sync (): Promise<void> {
    const { sync, channel, node, logger } = this.#options
    const { key, node: before } = this.#run.record
    while (this.#isDue && this.#active.has(this)) {
      this.#isDue = false
      try {
        const run = await sync(key)
        // Its log here was dropped to make room, and read anew.
        if (run !== undefined && run !== this.#run && this.#active.has(this)) this.#run.forward(run)
        this.#blindSince = undefined
      } catch (error) {
        // The next beat looks again.
        logger.debug({ err: error, runId: key.id }, 'a run of another node could not be looked up')
        this.#sendAwayInTime()
      }
    }
    const { node: owner } = this.#run.record
    if (owner !== before && owner !== node && this.#active.has(this)) channel.send(owner, { kind: 'follow', run: key, node })
  }

  #sendAwayInTime (): void {
    const now = performance.now()
    this.#blindSince ??= now
    if (now - this.#blindSince < this.#options.patienceMs) return
    this.#blindSince = undefined
    this.#options.logger.warn({ runId: this.#run.record.key.id }, 'a run of another node could not be followed any more; its readers are sent away')
    this.#run.topic.endReaders()
  }
}
