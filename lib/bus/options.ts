import { readInteger, readMs } from '../options.ts'

/** How much of a topic is kept for readers that come back. */
export interface ReplayOptions {
  /** Events kept; 0 keeps none. @default 256 */
  readonly maxEvents?: number | undefined
  /** Bytes kept, of payloads and of frames together; 0 keeps none. @default 4194304 */
  readonly maxBytes?: number | undefined
  /** Milliseconds that events are kept after the topic's end, or, in a topic of lifetime `use`, at least after its latest event. @default 600000 */
  readonly ttlMs?: number | undefined
}

/** Limits and pace of an {@link EventBus}. */
export interface EventBusOptions {
  /** Default of every topic. */
  readonly replay?: ReplayOptions | undefined
  /**
   * Topics held at once. Over it the topic that has ended longest ago goes first, then the topic of lifetime `use` that is
   * silent longest; never one that has readers. If none can go, the new one is refused (AGT_ERR_BUS_TOPIC_LIMIT).
   * @default 100000
   */
  readonly maxTopics?: number | undefined
  /**
   * Bytes kept in all topics. Over it topics go as for `maxTopics`; then the topic that grows loses its own oldest events,
   * and its readers that still need them are told of the gap.
   * @default 268435456
   */
  readonly maxTotalBytes?: number | undefined
  /** Milliseconds that events gather before they are delivered; 0 delivers on the next tick. @default 0 */
  readonly coalesceMs?: number | undefined
  /** Milliseconds of fan-out after which the event loop has its turn. @default 5 */
  readonly sliceMs?: number | undefined
}

/** How a topic is made; without effect on one that is there already. */
export interface TopicOptions {
  /** First life of the topic, in every cursor of it: 1 to 64 letters, digits, `_`, `-`. @default a random one */
  readonly epoch?: string | undefined
  /** Sequence of the first event. @default 1 */
  readonly firstSeq?: number | undefined
  /** Overrides the bus's, field by field. */
  readonly replay?: ReplayOptions | undefined
  /** Overrides the bus's. */
  readonly coalesceMs?: number | undefined
  /** `append`: readers see what is appended; `manual`: up to {@link Topic.markStored} (R1). @default 'append' */
  readonly watermark?: 'append' | 'manual' | undefined
  /** `end`: held until its owner ends it; `use`: held while it has readers or events younger than `ttlMs`. @default 'end' */
  readonly lifetime?: 'end' | 'use' | undefined
}

/** {@link ReplayOptions} with nothing left open. */
export interface ReplayLimits {
  readonly maxEvents: number
  readonly maxBytes: number
  readonly ttlMs: number
}

/** {@link EventBusOptions} with nothing left open. */
export interface BusLimits {
  readonly replay: ReplayLimits
  readonly maxTopics: number
  readonly maxTotalBytes: number
  readonly coalesceMs: number
  readonly sliceMs: number
}

const REPLAY: ReplayLimits = { maxEvents: 256, maxBytes: 4 * 1024 * 1024, ttlMs: 600_000 }

/** Checks the options of a bus and fills in the defaults. @throws AGT_ERR_OPTION_INVALID */
export function resolveEventBusOptions (options: EventBusOptions = {}): BusLimits {
  return {
    replay: resolveReplay(options.replay, REPLAY),
    maxTopics: readInteger('maxTopics', options.maxTopics, { default: 100_000, min: 1 }),
    maxTotalBytes: readInteger('maxTotalBytes', options.maxTotalBytes, { default: 256 * 1024 * 1024 }),
    coalesceMs: readMs('coalesceMs', options.coalesceMs, { default: 0 }),
    sliceMs: readMs('sliceMs', options.sliceMs, { default: 5 })
  }
}

/** Lays a topic's replay options over those of its bus. @throws AGT_ERR_OPTION_INVALID */
export function resolveReplay (options: ReplayOptions | undefined, base: ReplayLimits): ReplayLimits {
  return {
    maxEvents: readInteger('replay.maxEvents', options?.maxEvents, { default: base.maxEvents }),
    maxBytes: readInteger('replay.maxBytes', options?.maxBytes, { default: base.maxBytes }),
    ttlMs: readMs('replay.ttlMs', options?.ttlMs, { default: base.ttlMs })
  }
}
