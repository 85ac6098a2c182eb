import { randomBytes } from 'node:crypto'
import { jsonLine } from '../json-line.ts'
import { readInteger, readMs } from '../options.ts'
import { isEpoch } from './cursor.ts'
import { BusClosedError, EpochError, EventDataError, TopicLimitError } from './errors.ts'
import { Flusher } from './flusher.ts'
import { LiveTopic } from './live-topic.ts'
import { type BusLimits, type EventBusOptions, resolveEventBusOptions, resolveReplay, type TopicOptions } from './options.ts'
import { Retention } from './retention.ts'
import type { SubscribeOptions, Subscription } from './subscription.ts'
import type { Topic } from './topic.ts'
import type { TopicHost } from './topic-host.ts'
import { TopicLog } from './topic-log.ts'

/** What is published to a user's topic. */
export interface Publication {
  /** Name of the event. CR, LF and NUL are refused. */
  readonly event?: string | undefined
  /** A string is sent as it is, anything else as JSON. */
  readonly data: unknown
}

/** The topics of one process: made on demand, bounded in number and bytes, freed by themselves. */
export class EventBus {
  #limits: BusLimits
  #topics = new Map<string, LiveTopic>()
  #retention = new Retention<LiveTopic>()
  #bytes = 0
  #isClosed = false
  /** Epochs are unique over restarts by the first part, within this life by the second. */
  #life = randomBytes(6).toString('base64url')
  #made = 0
  #host: TopicHost<LiveTopic> & { takesReaders: boolean }

  /** @throws AGT_ERR_OPTION_INVALID */
  constructor (options?: EventBusOptions) {
    this.#limits = resolveEventBusOptions(options)
    this.#host = {
      flusher: new Flusher(this.#limits.sliceMs),
      takesReaders: true,
      count: (topic, bytes) => this.#count(topic, bytes),
      touch: (topic) => this.#touch(topic),
      drop: (topic) => this.#drop(topic)
    }
  }

  /** Topics held. */
  get size (): number { return this.#topics.size }

  /** Bytes kept in all topics. */
  get bytes (): number { return this.#bytes }

  /**
   * The topic of this key, made if there is none; the caller of a topic of lifetime `end`, the default, owns it and ends it.
   * @throws AGT_ERR_BUS_TOPIC_LIMIT, AGT_ERR_BUS_CLOSED, AGT_ERR_BUS_EPOCH, AGT_ERR_OPTION_INVALID
   */
  topic (key: string, options: TopicOptions = {}): Topic {
    return this.#topics.get(key) ?? this.#make(key, options)
  }

  /** The topic of this key, if there is one. */
  find (key: string): Topic | undefined {
    return this.#topics.get(key)
  }

  /**
   * Publishes to a topic of lifetime `use`, made if there is none; returns the event's sequence.
   * @throws AGT_ERR_BUS_EVENT_DATA for what JSON cannot hold, and what {@link Topic.append} and {@link EventBus.topic} throw
   */
  publish (key: string, publication: Publication): number {
    const { event, data } = publication
    const topic = this.topic(key, { lifetime: 'use' })
    return typeof data === 'string' ? topic.append({ event, data }) : topic.append({ event, data: toJson(data), isLine: true })
  }

  /** Subscribes to a topic, made if there is none; it is there as long as somebody reads it. */
  subscribe (key: string, options?: SubscribeOptions): Subscription {
    return this.topic(key, { lifetime: 'use' }).subscribe(options)
  }

  /** Forgets a topic before its time: its readers are ended with `closed`. Nothing happens where there is none. */
  drop (key: string): void {
    const topic = this.#topics.get(key)
    if (topic !== undefined) this.#drop(topic)
  }

  /**
   * Ends every reader, and each one that comes afterwards; topics stay, and may be published to until `close()`. For a
   * server that closes: it waits for its connections before its publishers have stopped. A second call does nothing.
   */
  endReaders (): void {
    this.#host.takesReaders = false
    for (const topic of this.#topics.values()) topic.endReaders()
  }

  /** Ends every reader and frees every topic. A second call does nothing. */
  close (): void {
    this.#isClosed = true
    for (const topic of this.#topics.values()) topic.close()
    this.#topics.clear()
  }

  #make (key: string, options: TopicOptions): LiveTopic {
    if (this.#isClosed) throw new BusClosedError()
    const { coalesceMs, replay } = this.#limits
    const epoch = options.epoch ?? `${this.#life}${(this.#made++).toString(36)}`
    if (!isEpoch(epoch)) throw new EpochError(JSON.stringify(epoch))
    const log = new TopicLog(epoch, readInteger('firstSeq', options.firstSeq, { default: 1, min: 1 }))
    const topic = new LiveTopic(this.#host, key, log, {
      replay: options.replay === undefined ? replay : resolveReplay(options.replay, replay),
      coalesceMs: readMs('coalesceMs', options.coalesceMs, { default: coalesceMs }),
      isManual: options.watermark === 'manual',
      isOwned: options.lifetime !== 'use'
    })
    this.#makeRoom()
    this.#topics.set(key, topic)
    this.#retention.touch(topic)
    return topic
  }

  #makeRoom (): void {
    const { maxTopics } = this.#limits
    while (this.#topics.size >= maxTopics) {
      const victim = this.#retention.next()
      if (victim === undefined) throw new TopicLimitError(maxTopics)
      this.#drop(victim)
    }
  }

  #count (topic: LiveTopic, bytes: number): void {
    this.#bytes += bytes
    const { maxTotalBytes } = this.#limits
    if (bytes < 0) return
    while (this.#bytes > maxTotalBytes) {
      const victim = this.#retention.next()
      if (victim === undefined || victim === topic) break
      this.#drop(victim)
    }
    if (this.#bytes > maxTotalBytes) topic.shrink(this.#bytes - maxTotalBytes)
  }

  #touch (topic: LiveTopic): void {
    if (topic.readers === 0 && topic.isUnused) this.#drop(topic)
    else this.#retention.touch(topic)
  }

  #drop (topic: LiveTopic): void {
    this.#retention.delete(topic)
    this.#topics.delete(topic.key)
    topic.close()
  }
}

function toJson (data: unknown): string {
  try {
    const text = jsonLine(data)
    if (text !== undefined) return text
  } catch (cause) {
    throw new EventDataError('it holds a cycle or a bigint', { cause })
  }
  throw new EventDataError(`a ${typeof data} is neither`)
}
