import { randomUUID } from 'node:crypto'
import { type EventInit } from '../bus/index.ts'
import { isEnded, logEvent, type Barrier, type LogEvent, type RunRecord, type RunStore } from '../stores/index.ts'
import { insist } from './insist.ts'
import { type Writer } from './writer.ts'

/** Events that may be held behind a pause or a terminal (R3). */
export const MAX_HELD_EVENTS = 4_096
/** Payload bytes that may be held. */
export const MAX_HELD_BYTES = 1024 * 1024

/** Events that are not told before what they promise is stored. */
export class HeldEvents {
  #events: EventInit[] = []
  #bytes = 0

  get isFull (): boolean {
    return this.#events.length >= MAX_HELD_EVENTS || this.#bytes >= MAX_HELD_BYTES
  }

  add (event: EventInit): void {
    this.#events.push(event)
    this.#bytes += event.data.length
  }

  clear (): void {
    this.#events = []
    this.#bytes = 0
  }

  /** The events as the log will hold them, numbered on from `last`. */
  numbered (last: number): LogEvent[] {
    return this.#events.map((event, index) => logEvent(last + 1 + index, event.data, event.event, event.level))
  }
}

/** What became of a barrier: `lost` = the run is somebody else's, `unavailable` = nobody knows, promise nothing. */
export type BarrierResult =
  | { readonly kind: 'ok', readonly record: RunRecord }
  | { readonly kind: 'lost' }
  | { readonly kind: 'unavailable' }

/** What {@link commitBarrier} works with. */
export interface BarrierPorts {
  readonly runs: RunStore
  /** Milliseconds after which what can not be stored is given up (R9). */
  readonly patienceMs: number
  /** Absent: nothing was begun, so nothing can be written. */
  readonly writer: Writer | undefined
}

/**
 * Writes a barrier: first everything that was told before it, then record, interrupts and held events in one step (R3). Tried
 * again under one operation id for as long as R9 allows, so that a lost acknowledgement is no failure.
 */
export async function commitBarrier (ports: BarrierPorts, record: RunRecord, barrier: Barrier): Promise<BarrierResult> {
  const { runs, writer, patienceMs } = ports
  const op = randomUUID()
  let { version } = record
  while (await writer?.flush() === true) {
    const expected = { version, fence: record.fence, op }
    const result = await insist(() => runs.commit(record.key, expected, barrier), patienceMs, () => writer?.isClosed === true).catch(() => undefined)
    switch (result?.kind) {
      case 'ok': return { kind: 'ok', record: result.record }
      case 'missing': return { kind: 'lost' }
      case 'stale':
        // Somebody may have linked the record meanwhile; only another fence or an end takes it from us.
        if (result.record.fence !== record.fence || isEnded(result.record.state) || result.record.version === version) return { kind: 'lost' }
        version = result.record.version
        break
      case 'misplaced':
        if (writer?.rewind(result.last) !== true) return { kind: 'unavailable' }
        break
      case undefined: return { kind: 'unavailable' }
    }
  }
  return { kind: 'unavailable' }
}
