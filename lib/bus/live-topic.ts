import type { Attachment, AttachOptions } from './attachment.ts'
import { BusClosedError, EventNameError, TopicEndedError } from './errors.ts'
import type { BusEvent, EventInit } from './event.ts'
import { type Flushable, type Flusher, Slice } from './flusher.ts'
import type { ReplayLimits } from './options.ts'
import { ByteReader, type ReaderOwner } from './reader.ts'
import { ReadyGate } from './ready-gate.ts'
import { startOf } from './start.ts'
import { type SubscribeOptions, Subscription } from './subscription.ts'
import type { TopicLog } from './topic-log.ts'
import type { Topic } from './topic.ts'
import type { View } from './view.ts'
import { ViewLog } from './view-log.ts'

/** Gathered payload at which nothing waits for the next tick. */
const FLUSH_BYTES = 32 * 1024

const LINE_BREAKING = /[\r\n\0]/

/** What a topic needs of its bus. */
export interface TopicHost {
  readonly flusher: Flusher
  /** The topic's bytes have changed by so much. */
  count (topic: LiveTopic, bytes: number): void
  /** Its readers came or went, it ended, or it was appended to without readers. */
  touch (topic: LiveTopic): void
  /** Its time is over and nobody reads it. */
  drop (topic: LiveTopic): void
}

/** How a topic was made, all resolved. */
export interface TopicSettings {
  readonly replay: ReplayLimits
  readonly coalesceMs: number
  readonly isManual: boolean
  readonly isOwned: boolean
}

/** The topic of an {@link EventBus}. */
export class LiveTopic implements Topic, Flushable, ReaderOwner {
  readonly key: string
  /** Held until it ends, see {@link TopicOptions.lifetime}. */
  readonly isOwned: boolean
  onTrim: ((fromSeq: number, toSeq: number) => void) | undefined
  isQueued = false

  #host: TopicHost
  #settings: TopicSettings
  #log: TopicLog
  #views: ViewLog[] = []
  #subscriptions = new Set<Subscription>()
  #gate = new ReadyGate()
  #readers = 0
  #pending = 0
  #bytes = 0
  /** Of these bytes, what the bus knows of. */
  #counted = 0
  #checkedName: string | undefined
  /** Delivering or trimming: what happens inside is taken up afterwards. */
  #isBusy = false
  #isClosed = false
  #isExpired = false
  #isFresh = false
  #window: NodeJS.Timeout | undefined
  #expiry: NodeJS.Timeout | undefined

  constructor (host: TopicHost, key: string, log: TopicLog, settings: TopicSettings) {
    this.#host = host
    this.#log = log
    this.#settings = settings
    this.key = key
    this.isOwned = settings.isOwned
  }

  get epoch (): string { return this.#log.epoch }
  get oldest (): number { return this.#log.oldest }
  get last (): number { return this.#log.last }
  get stored (): number { return this.#log.stored }
  get bytes (): number { return this.#bytes }
  get readers (): number { return this.#readers }
  get isEnded (): boolean { return this.#log.ended }
  /** Of lifetime `use`, and keeps nothing that a reader could come back for. */
  get isUnused (): boolean { return !this.isOwned && this.#log.size === 0 }

  append (init: EventInit): number {
    const log = this.#log
    if (log.ended || this.#isClosed) throw this.#isClosed ? new BusClosedError() : new TopicEndedError(this.key)
    const { event, data, level } = init
    if (event !== undefined && event !== this.#checkedName) this.#checkName(event)
    const seq = log.append(event, data.isWellFormed() ? data : data.toWellFormed(), level)
    if (!this.#settings.isManual) log.stored = seq
    this.#bytes += data.length
    if (this.#readers > 0) {
      this.#pending += data.length
      if (this.#pending >= FLUSH_BYTES) this.#flushNow()
      else if (!this.isQueued) this.#schedule()
    } else if (!this.isOwned) this.#host.touch(this)
    if (!this.isOwned) this.#stayFresh()
    this.#settle()
    return seq
  }

  markStored (seq: number): void {
    const log = this.#log
    if (seq <= log.stored || seq > log.last) return
    log.stored = seq
    log.version++
    if (this.#readers > 0) this.#host.flusher.schedule(this)
    this.#settle()
  }

  end (): void {
    const log = this.#log
    if (log.ended || this.#isClosed) return
    log.ended = true
    log.version++
    clearTimeout(this.#window)
    if (this.#readers > 0) this.#host.flusher.schedule(this)
    this.#arm()
    this.#host.touch(this)
  }

  attach (options: AttachOptions): Attachment {
    const view = this.#view(options.view)
    this.encode(view)
    const { seq, gap } = startOf(this.#log, options, (at) => view.hasLost(at))
    const reader = new ByteReader(this, view, options, seq)
    view.readers.add(reader, this.#log)
    if (reader.isLossless) this.#gate.add(reader)
    this.#readers++
    if (this.#isClosed) {
      reader.finish('closed')
      this.#views = []
      return reader
    }
    this.#host.touch(this)
    reader.start(gap)
    this.#settle()
    return reader
  }

  subscribe (options: SubscribeOptions = {}): Subscription {
    const subscription = new Subscription(this.#log, options, (gone) => {
      if (this.#subscriptions.delete(gone)) this.#left()
    })
    if (this.#isClosed) {
      subscription.close()
      return subscription
    }
    if (!subscription.isClosed) {
      this.#subscriptions.add(subscription)
      this.#readers++
    }
    this.#host.touch(this)
    return subscription
  }

  ready (): Promise<void> | undefined {
    return this.#gate.wait()
  }

  read (after: number, limit = Infinity): readonly BusEvent[] {
    const log = this.#log
    const events: BusEvent[] = []
    const from = Math.max(after + 1, log.oldest)
    for (let seq = from; seq <= log.last && events.length < limit; seq++) events.push(log.at(seq))
    return events
  }

  /** Delivers what was gathered; see {@link Flushable}. */
  flush (slice: Slice): boolean {
    if (this.#isBusy) return false
    const log = this.#log
    this.#isBusy = true
    this.#pending = 0
    let isDone = true
    for (const view of this.#views) {
      if (!view.readers.isActive) continue
      this.encode(view)
      if (!view.readers.run(log, slice)) isDone = false
    }
    for (const subscription of this.#subscriptions) subscription.wake()
    this.#isBusy = false
    this.#gate.settle()
    this.#settle()
    return isDone
  }

  /** Gives up the oldest events until so many bytes are free, or nothing more can go. */
  shrink (bytes: number): void {
    this.#trim(Infinity, Math.max(0, this.#bytes - bytes))
  }

  /** Ends every reader with `closed` and frees everything. */
  close (): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#window)
    clearTimeout(this.#expiry)
    for (const view of this.#views) for (const reader of view.readers.open()) reader.finish('closed')
    for (const subscription of this.#subscriptions) subscription.close()
    this.#views = []
    this.#log.release()
    this.#bytes = 0
    this.#count()
  }

  encode (view: ViewLog): void {
    this.#bytes += view.encode()
  }

  advanced (): void {
    this.#gate.settle()
    this.#settle()
  }

  detached (reader: ByteReader): void {
    reader.view.readers.remove(reader)
    if (reader.isLossless) this.#gate.delete(reader)
    this.#left()
  }

  #left (): void {
    this.#readers--
    if (this.#isClosed) return
    if (this.#readers === 0 && this.#isExpired) this.#host.drop(this)
    else {
      this.#settle()
      this.#host.touch(this)
    }
  }

  #view (view: View): ViewLog {
    for (const known of this.#views) if (known.view.key === view.key) return known
    const made = new ViewLog(view, this.#log)
    this.#views.push(made)
    return made
  }

  #checkName (name: string): void {
    if (LINE_BREAKING.test(name)) throw new EventNameError(JSON.stringify(name))
    this.#checkedName = name
  }

  #schedule (): void {
    const { coalesceMs } = this.#settings
    if (coalesceMs === 0) this.#host.flusher.schedule(this)
    else this.#window ??= setTimeout(this.#endWindow, coalesceMs).unref()
  }

  #endWindow = (): void => {
    this.#window = undefined
    this.#flushNow()
  }

  #flushNow (): void {
    if (!this.flush(this.#host.flusher.slice())) this.#host.flusher.schedule(this)
  }

  /** Takes up what a change of the log or of its readers brings: limits, counts. */
  #settle (): void {
    const { maxEvents, maxBytes } = this.#settings.replay
    if (this.#log.size > maxEvents || this.#bytes > maxBytes) this.#trim(maxEvents, maxBytes)
    this.#count()
  }

  #count (): void {
    const change = this.#bytes - this.#counted
    if (change === 0) return
    this.#counted += change
    this.#host.count(this, change)
  }

  #trim (maxEvents: number, maxBytes: number): void {
    if (this.#isBusy) return
    if (this.#bytes > maxBytes) this.#dropUnread()
    const to = Math.min(this.#excess(maxEvents, maxBytes), this.#log.stored, this.#gate.floor)
    if (to < this.#log.oldest) return
    if (to > this.#served()) {
      this.flush(new Slice(Infinity)) // who keeps up loses nothing; this trims as well
      return
    }
    this.#drop(to)
    this.#count()
  }

  /** Last event that has to go for the limits to hold. */
  #excess (maxEvents: number, maxBytes: number): number {
    const log = this.#log
    let to = Math.max(log.oldest, log.last - maxEvents + 1) - 1
    let bytes = this.#bytes
    if (bytes <= maxBytes) return to
    for (let seq = log.oldest; seq <= log.last && (seq <= to || bytes > maxBytes); seq++) {
      bytes -= log.at(seq).data.length
      for (const view of this.#views) bytes -= view.sizeOf(seq)
      to = Math.max(to, seq)
    }
    return to
  }

  #served (): number {
    let served = Infinity
    for (const { readers } of this.#views) if (readers.isActive) served = Math.min(served, readers.served)
    return served
  }

  #drop (to: number): void {
    const log = this.#log
    this.#isBusy = true
    this.onTrim?.(log.oldest, to)
    while (log.oldest <= to) log.dropOldest()
    for (const view of this.#views) view.trim()
    this.#measure()
    this.#isBusy = false
  }

  /** Drops encodings that nobody reads; they go before events do. */
  #dropUnread (): void {
    if (this.#views.every((view) => view.readers.isActive)) return
    this.#views = this.#views.filter((view) => view.readers.isActive)
    this.#measure()
  }

  #measure (): void {
    this.#bytes = this.#log.bytes
    for (const view of this.#views) this.#bytes += view.bytes
  }

  #stayFresh (): void {
    this.#isFresh = true
    if (this.#expiry === undefined) this.#arm()
  }

  #arm (): void {
    clearTimeout(this.#expiry)
    this.#isFresh = false
    this.#expiry = setTimeout(this.#expire, this.#settings.replay.ttlMs).unref()
  }

  #expire = (): void => {
    this.#expiry = undefined
    if (this.#isFresh) {
      this.#arm()
      return
    }
    if (this.#log.ended) this.#isExpired = true
    else this.#trim(0, 0)
    if (this.#log.size === 0) this.#log.release()
    if (this.#readers === 0) this.#host.drop(this)
  }
}
