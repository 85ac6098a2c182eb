import { type EventBusOptions } from '../../lib/bus/index.ts'
import { InvalidOptionError } from '../../lib/options.ts'
import { type SseHubOptions } from '../../lib/sse/index.ts'

/** Options of the `event-stream` plugin: limits and pace of its bus, times of its streams. */
export interface EventStreamOptions extends EventBusOptions, Omit<SseHubOptions, 'heartbeat'> {}

/** {@link EventStreamOptions} by what they are for. Numbers are checked, and defaults filled in, by bus and hub themselves. */
export interface ResolvedEventStreamOptions {
  readonly bus: EventBusOptions
  readonly hub: SseHubOptions
}

/** Sorts the options out. @throws AGT_ERR_OPTION_INVALID where a group of options is no object */
export function resolveEventStreamOptions (options: EventStreamOptions): ResolvedEventStreamOptions {
  const { replay, maxTopics, maxTotalBytes, coalesceMs, sliceMs, heartbeatMs, writeTimeoutMs, streamTimeoutMs, closeTimeoutMs } = options
  if (replay !== undefined && (typeof replay !== 'object' || replay === null)) {
    throw new InvalidOptionError('replay', String(replay), 'it is an object of maxEvents, maxBytes and ttlMs')
  }
  return {
    bus: { replay, maxTopics, maxTotalBytes, coalesceMs, sliceMs },
    hub: { heartbeatMs, writeTimeoutMs, streamTimeoutMs, closeTimeoutMs }
  }
}
