import { isObject } from '../agent/index.ts'
import { type BusEvent } from '../bus/index.ts'
import { type JsonValue, logEvent, type LogEvent, type RunKey, type Signals } from '../stores/index.ts'
import { type RunLogger } from './logger.ts'

/**
 * What the readers of a run on other nodes are told. Each may be lost, and then is found in the store.
 * - `events`: these were stored, under this fence.
 * - `stored`: there are events up to this sequence.
 * - `record`: the run's record, and with it perhaps its owner, has changed.
 */
export type RunMessage =
  | { readonly kind: 'events', readonly fence: number, readonly events: readonly LogEvent[] }
  | { readonly kind: 'stored', readonly seq: number }
  | { readonly kind: 'record' }

/** An event on its way: payload, name, level; what is absent at the end is left out. */
type Packed = readonly [data: string, event?: string | null, level?: number]

/** The message of some stored events that follow each other. */
export function packEvents (fence: number, events: readonly BusEvent[]): JsonValue {
  const packed = events.map(({ data, event, level }): Packed => {
    if (level !== undefined) return [data, event ?? null, level]
    return event === undefined ? [data] : [data, event]
  })
  return { kind: 'events', fence, seq: events[0]?.seq ?? 0, events: packed as unknown as JsonValue } // texts and numbers
}

/** Reads a message; `undefined` for what is none that is known here. */
export function readRunMessage (message: JsonValue): RunMessage | undefined {
  if (!isObject(message)) return undefined
  const { kind, seq, fence, events } = message
  switch (kind) {
    case 'record': return { kind }
    case 'stored': return typeof seq === 'number' ? { kind, seq } : undefined
    case 'events': {
      if (typeof seq !== 'number' || typeof fence !== 'number' || !Array.isArray(events)) return undefined
      const packed = events as unknown as readonly Packed[] // written by packEvents()
      return { kind, fence, events: packed.map(([data, event, level], index) => logEvent(seq + index, data, event ?? undefined, level)) }
    }
    default: return undefined
  }
}

/** Tells every node that follows the run to look at its record. Never rejects: who misses it looks at its next beat. */
export function announceChange (signals: Signals, key: RunKey, logger: RunLogger): void {
  signals.publish({ kind: 'run', key }, { kind: 'record' })
    .catch((error: unknown) => { logger.debug({ err: error, runId: key.id }, 'a change of a run could not be announced') })
}
