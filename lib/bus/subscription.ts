import { ReadableStream } from 'node:stream/web'
import { type Cursor, formatCursor } from './cursor.ts'
import type { Gap } from './gap.ts'
import { startOf } from './start.ts'
import type { TopicLog } from './topic-log.ts'

/** One item of a {@link Subscription}. */
export interface SubscriptionItem {
  /** Cursor of the event, `<epoch>.<seq>`: pass it as `after` to go on behind it. */
  readonly id: string
  /** Name of the event; `gap` where events are missing. */
  readonly event?: string
  /** Payload as published: the string itself, or JSON. Of a gap: `{"oldest":n}`, the first sequence that is kept. */
  readonly data: string
}

/** Where a subscription starts, and what ends it. */
export interface SubscribeOptions {
  /** The last event that was seen, as its `id` says. Wins over `from`. */
  readonly after?: Cursor | string | undefined
  /** Without a cursor: `live` from the next event on, `start` from the first, with a gap where that is gone. @default 'live' */
  readonly from?: 'live' | 'start' | undefined
  /** Ends the subscription when it fires. */
  readonly signal?: AbortSignal | undefined
}

type Result = IteratorResult<SubscriptionItem, undefined>

const DONE: Result = { done: true, value: undefined }

/**
 * A topic read as objects: a cursor, never a queue. Who reads too slowly finds a `gap` item in the place of what was
 * dropped meanwhile. It ends with the topic, with its signal, by `close()`, or when a loop over it is left.
 */
export class Subscription implements AsyncIterableIterator<SubscriptionItem, undefined> {
  #log: TopicLog
  #seq: number
  #gap: Gap['reason'] | undefined
  #waiting: ((result: Result) => void)[] = []
  #isClosed = false
  #signal: AbortSignal | undefined
  #onClose: (subscription: Subscription) => void

  /** Made by {@link Topic.subscribe}. */
  constructor (log: TopicLog, options: SubscribeOptions, onClose: (subscription: Subscription) => void) {
    this.#log = log
    const { seq, gap } = startOf(log, { after: options.after, from: options.from ?? 'live' }, (at) => at < log.oldest - 1)
    this.#seq = seq
    this.#gap = gap
    this.#onClose = onClose
    this.#signal = options.signal
    if (this.#signal?.aborted === true) this.close()
    else this.#signal?.addEventListener('abort', this.#abort)
  }

  get isClosed (): boolean {
    return this.#isClosed
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  next (): Promise<Result> {
    const item = this.#waiting.length === 0 ? this.#take() : undefined
    if (item !== undefined) return Promise.resolve({ done: false, value: item })
    if (this.#isClosed) return Promise.resolve(DONE)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  return (): Promise<Result> {
    this.close()
    return Promise.resolve(DONE)
  }

  /** Ends the subscription; who waits for the next item gets the end. */
  close (): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#signal?.removeEventListener('abort', this.#abort)
    for (const resolve of this.#waiting) resolve(DONE)
    this.#waiting = []
    this.#onClose(this)
  }

  /** The same items as a web stream that reads nothing ahead; cancelling it closes the subscription. */
  toReadableStream (): ReadableStream<SubscriptionItem> {
    return new ReadableStream<SubscriptionItem>({
      pull: async (controller) => {
        const { done, value } = await this.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: () => this.close()
    }, { highWaterMark: 0 })
  }

  /** Hands what has come to those who wait; called by the topic. */
  wake (): void {
    while (this.#waiting.length > 0) {
      const value = this.#take()
      if (value === undefined) return
      this.#waiting.shift()?.({ done: false, value })
    }
  }

  #take (): SubscriptionItem | undefined {
    const log = this.#log
    if (this.#isClosed) return undefined
    if (this.#gap !== undefined || this.#seq < log.oldest - 1) return this.#takeGap()
    if (this.#seq < log.stored) {
      const { seq, event, data } = log.at(++this.#seq)
      const id = formatCursor(log.epochAt(seq), seq)
      return event === undefined ? { id, data } : { id, event, data }
    }
    if (log.ended && this.#seq >= log.last) this.close()
    return undefined
  }

  #takeGap (): SubscriptionItem {
    const log = this.#log
    const { oldest } = log
    this.#gap = undefined
    this.#seq = oldest - 1
    return { id: formatCursor(log.epochAt(this.#seq), this.#seq), event: 'gap', data: JSON.stringify({ oldest }) }
  }

  #abort = (): void => this.close()
}
