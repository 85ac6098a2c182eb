import type { EventInit } from './event.ts'
import type { ReplayLimits } from './options.ts'
import type { TopicLog } from './topic-log.ts'
import type { View } from './view.ts'
import { ViewLog } from './view-log.ts'

/** What a topic keeps: its events and their frames, counted in bytes. */
export class Backlog {
  readonly log: TopicLog
  views: ViewLog[] = []
  /** Payloads by their length as text, and the frames of every view. */
  bytes = 0

  #limits: ReplayLimits

  constructor (log: TopicLog, limits: ReplayLimits) {
    this.log = log
    this.#limits = limits
  }

  /** More is kept than the topic's own limits allow. */
  get isOver (): boolean {
    return this.log.size > this.#limits.maxEvents || this.bytes > this.#limits.maxBytes
  }

  append (data: string, options: Omit<EventInit, 'data'>): number {
    this.bytes += data.length
    return this.log.append(data, options)
  }

  view (view: View): ViewLog {
    for (const known of this.views) if (known.view.key === view.key) return known
    const made = new ViewLog(view, this.log)
    this.views.push(made)
    return made
  }

  encode (view: ViewLog): void {
    this.bytes += view.encode()
  }

  /** Last event that has to go for the topic's own limits to hold, or for so many bytes to be kept at most. */
  excess (maxBytes?: number): number {
    const { log } = this
    const most = maxBytes ?? this.#limits.maxBytes
    let to = maxBytes === undefined ? Math.max(log.oldest, log.last - this.#limits.maxEvents + 1) - 1 : log.oldest - 1
    if (this.bytes <= most) return to
    // Short of room, their memory has to be free at once.
    if (this.dropUnread()) log.unframe()
    let { bytes } = this
    for (let seq = log.oldest; seq <= log.last && (seq <= to || bytes > most); seq++) {
      bytes -= log.sizeAt(seq)
      for (const view of this.views) bytes -= view.sizeOf(seq)
      to = Math.max(to, seq)
    }
    return to
  }

  /** Last event that every reader which does not stall has been given. */
  get served (): number {
    let served = Infinity
    for (const view of this.views) if (view.readers.isActive && view.readers.served < served) served = view.readers.served
    return served
  }

  drop (to: number): void {
    const { log } = this
    const before = log.bytes
    while (log.oldest <= to) log.dropOldest()
    this.bytes -= before - log.bytes
    for (const view of this.views) this.bytes -= view.trim()
  }

  /** Gives all memory back but that of events which are not stored yet: their owner still needs them. */
  release (): void {
    const { log } = this
    this.#dropViews(() => true)
    if (log.stored === log.last) log.release()
    else while (log.oldest <= log.stored) log.dropOldest()
    this.bytes = log.bytes
  }

  /** Drops encodings that nobody reads; they go before events do. */
  dropUnread (): boolean {
    if (!this.#dropViews((view) => !view.readers.isActive)) return false
    this.bytes = this.log.bytes
    for (const view of this.views) this.bytes += view.bytes
    return true
  }

  #dropViews (which: (view: ViewLog) => boolean): boolean {
    const dropped = this.views.filter(which)
    if (dropped.length === 0) return false
    this.views = this.views.filter((view) => !dropped.includes(view))
    // The log, or a store, may keep payloads in their frames.
    for (const view of dropped) view.seal()
    return true
  }
}
