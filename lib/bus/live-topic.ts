import type { Attachment, AttachOptions } from './attachment.ts'
import { Backlog } from './backlog.ts'
import { isEpoch } from './cursor.ts'
import { BusClosedError, EpochError, EventNameError, TopicEndedError } from './errors.ts'
import type { BusEvent, EventInit } from './event.ts'
import type { EventBlock } from './event-block.ts'
import { Expiry } from './expiry.ts'
import { type Flushable, Slice } from './flusher.ts'
import { ByteReader, type ReaderOwner } from './reader.ts'
import { ReadyGate } from './ready-gate.ts'
import { readCursor, startOf } from './start.ts'
import { type SubscribeOptions, Subscription } from './subscription.ts'
import type { TopicHost, TopicSettings } from './topic-host.ts'
import type { TopicLog } from './topic-log.ts'
import type { Topic } from './topic.ts'
import type { ViewLog } from './view-log.ts'

/** Gathered payload at which nothing waits for the next tick. */
const FLUSH_BYTES = 32 * 1024

/** Of an event that says nothing but its payload. */
const PLAIN: Omit<EventInit, 'data'> = {}

const LINE_BREAKING = /[\r\n\0]/

/** The topic of an {@link EventBus}. */
export class LiveTopic implements Topic, Flushable, ReaderOwner {
  readonly key: string
  /** Held until it ends, see {@link TopicOptions.lifetime}. */
  readonly isOwned: boolean
  mayDeliver: (() => boolean) | undefined
  onTrim: ((fromSeq: number, toSeq: number) => void) | undefined
  isQueued = false

  #host: TopicHost<LiveTopic>
  #settings: TopicSettings
  #log: TopicLog
  #backlog: Backlog
  #expiry: Expiry
  #subscriptions = new Set<Subscription>()
  #gate = new ReadyGate()
  #readers = 0
  #pending = 0
  /** Of the bytes kept, what the bus knows of. */
  #counted = 0
  #checkedName: string | undefined
  /** Delivering or trimming: what happens inside is taken up afterwards. */
  #isBusy = false
  #isForced = false
  #isClosed = false
  #isExpired = false
  #window: NodeJS.Timeout | undefined

  constructor (host: TopicHost<LiveTopic>, key: string, log: TopicLog, settings: TopicSettings) {
    this.#host = host
    this.#log = log
    this.#settings = settings
    this.#backlog = new Backlog(log, settings.replay)
    this.#expiry = new Expiry(settings.replay.ttlMs, () => this.#expire())
    this.key = key
    this.isOwned = settings.isOwned
  }

  get epoch (): string { return this.#log.epoch }
  get oldest (): number { return this.#log.oldest }
  get last (): number { return this.#log.last }
  get stored (): number { return this.#log.stored }
  get bytes (): number { return this.#backlog.bytes }
  get readers (): number { return this.#readers }
  get isEnded (): boolean { return this.#log.ended }
  /** Of lifetime `use`, and keeps nothing that a reader could come back for. */
  get isUnused (): boolean { return !this.isOwned && this.#log.size === 0 }

  append (init: EventInit): number {
    return this.add(init.data, init)
  }

  add (text: string, options: Omit<EventInit, 'data'> = PLAIN): number {
    const log = this.#log
    if (log.ended || this.#isClosed) throw this.#isClosed ? new BusClosedError() : new TopicEndedError(this.key)
    const { event, isLine } = options
    if (event !== undefined && event !== this.#checkedName) this.#checkName(event)
    const data = isLine === true || text.isWellFormed() ? text : text.toWellFormed()
    const seq = this.#backlog.append(data, options)
    if (!this.#settings.isManual) log.stored = seq
    if (this.#readers > 0) {
      this.#pending += data.length
      if (this.#pending >= FLUSH_BYTES) this.#flushNow()
      else if (!this.isQueued) this.#schedule()
    } else if (!this.isOwned) this.#host.touch(this)
    if (!this.isOwned) this.#expiry.extend()
    this.#settle()
    return seq
  }

  renew (epoch: string, firstSeq = this.last + 1): void {
    if (!isEpoch(epoch)) throw new EpochError(JSON.stringify(epoch))
    this.#log.renew(epoch, firstSeq)
  }

  epochAt (seq: number): string {
    return this.#log.epochAt(seq)
  }

  lastOf (epoch: string): number | undefined {
    return this.#log.lastOf(epoch)
  }

  markStored (seq: number): void {
    const log = this.#log
    if (seq <= log.stored || seq > log.last) return
    log.stored = seq
    log.version++
    if (this.#readers > 0) this.#host.flusher.schedule(this)
    this.#settle()
  }

  wake (): void {
    // Also for who came meanwhile and was given nothing.
    this.#log.version++
    if (this.#readers > 0) this.#host.flusher.schedule(this)
  }

  end (): void {
    const log = this.#log
    if (log.ended || this.#isClosed) return
    log.ended = true
    log.version++
    clearTimeout(this.#window)
    if (this.#readers > 0) this.#host.flusher.schedule(this)
    this.#expiry.start()
    this.#host.touch(this)
  }

  attach (options: AttachOptions): Attachment {
    if (!this.#takesReaders) return this.#refuse(options)
    const view = this.#backlog.view(options.view)
    this.encode(view)
    const { seq, gap } = startOf(this.#log, options, (at) => view.hasLost(at))
    const reader = new ByteReader(this, view, options, seq)
    view.readers.add(reader, this.#log)
    if (reader.isLossless) this.#gate.add(reader)
    this.#readers++
    this.#host.touch(this)
    reader.start(gap)
    this.#settle()
    return reader
  }

  subscribe (options: SubscribeOptions = {}): Subscription {
    const subscription = new Subscription(this.#log, options, (gone) => {
      if (this.#subscriptions.delete(gone)) this.#left()
    })
    if (!this.#takesReaders) subscription.close()
    if (!subscription.isClosed) {
      this.#subscriptions.add(subscription)
      this.#readers++
    }
    if (!this.#isClosed) this.#host.touch(this)
    return subscription
  }

  ready (): Promise<void> | undefined {
    return this.#gate.wait()
  }

  blockAfter (seq: number): EventBlock | undefined {
    return this.#log.blockAfter(seq)
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
    // Until it is asked for again there is nothing to do.
    if (this.isHeldBack) return true
    const log = this.#log
    this.#isBusy = true
    this.#pending = 0
    let isDone = true
    for (const view of this.#backlog.views) {
      if (!view.readers.isActive) continue
      this.encode(view)
      if (!view.readers.run(log, slice)) isDone = false
    }
    for (const subscription of this.#subscriptions) subscription.wake()
    // Few come back to what has ended: whoever does is worth a new encoding.
    if (log.ended && this.#readers === 0) this.#backlog.dropUnread()
    this.#isBusy = false
    this.#gate.settle()
    this.#settle()
    return isDone
  }

  /** Gives up the oldest events until so many bytes are free, or nothing more can go. */
  shrink (bytes: number): void {
    this.#trim(Math.max(0, this.#backlog.bytes - bytes))
  }

  endReaders (): void {
    for (const view of this.#backlog.views) for (const reader of view.readers.open()) reader.finish('closed')
    for (const subscription of this.#subscriptions) subscription.close()
  }

  /** Ends every reader with `closed` and frees everything. */
  close (): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#window)
    this.#expiry.stop()
    this.endReaders()
    this.#backlog.release()
    this.#count()
  }

  get isClosed (): boolean {
    return this.#isClosed
  }

  encode (view: ViewLog): void {
    this.#backlog.encode(view)
  }

  /** Whether its owner lets nothing be delivered now. */
  get isHeldBack (): boolean {
    return this.mayDeliver?.() === false
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

  get #takesReaders (): boolean {
    return !this.#isClosed && this.#host.takesReaders
  }

  /** The reader keeps the cursor it came with, or it would skip what it was not given. */
  #refuse ({ after, from, sink }: AttachOptions): Attachment {
    const log = this.#log
    const asked = after === undefined ? undefined : readCursor(after)
    const seq = from === 'live' ? log.stored : 0
    const cursor = asked ?? { epoch: log.epochAt(seq), seq }
    if (!this.#isClosed) this.#host.touch(this)
    sink.end('closed', cursor)
    return { cursor, lagBytes: 0, resume: ignore, close: ignore }
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
    if (this.#backlog.isOver) this.#trim()
    this.#count()
  }

  #count (): void {
    const change = this.#backlog.bytes - this.#counted
    if (change === 0) return
    this.#counted += change
    this.#host.count(this, change)
  }

  /** Drops what the topic's own limits want gone, or everything over so many bytes, as far as it may go. */
  #trim (maxBytes?: number): void {
    if (this.#isBusy) return
    let to = this.#droppable(maxBytes)
    if (to > this.#backlog.served && !this.#isForced) {
      this.#serveAll()
      to = this.#droppable(maxBytes)
    }
    to = Math.min(to, this.#backlog.served)
    if (to < this.#log.oldest) return
    this.#isBusy = true
    this.onTrim?.(this.#log.oldest, to)
    this.#backlog.drop(to)
    this.#isBusy = false
    this.#count()
  }

  #droppable (maxBytes?: number): number {
    return Math.min(this.#backlog.excess(maxBytes), this.#log.stored, this.#gate.floor)
  }

  /** Who keeps up loses nothing: before events go that were not delivered yet, they are, without slices. */
  #serveAll (): void {
    this.#isForced = true
    const slice = new Slice(Infinity)
    if (!this.flush(slice)) this.flush(slice) // the first one may have finished an older pass
    this.#isForced = false
  }

  #expire (): void {
    if (this.#log.ended) this.#isExpired = true
    else this.#trim(0)
    if (this.#log.size === 0) this.#log.release()
    if (this.#readers === 0) this.#host.drop(this)
  }
}

function ignore (): void {}
