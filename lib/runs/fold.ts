import { type EventBlock, type EventInit, EventList } from '../bus/index.ts'
import { type Fold, type JsonValue, type LogEvents, type RunRecord } from '../stores/index.ts'
import { type RunFold } from './protocol.ts'
import { type ReplayLimits } from './spec.ts'

/** Events between two stored folds (R12), so that a node which takes a run over has little to fold. */
export const FOLD_EVERY = 256

/** When the next fold is stored: after this many events or payload bytes. */
export interface FoldCadence {
  readonly events: number
  readonly bytes: number
}

/**
 * The cadence of a run's folds: before the log is trimmed, so when half of what it may hold has come, and every 256 events
 * for whoever takes the run over. Nobody does that while this process lives where the store is its own.
 */
export function foldCadence (isShared: boolean, replay: ReplayLimits): FoldCadence {
  const events = isShared ? FOLD_EVERY : Math.max(FOLD_EVERY, Math.floor(replay.maxEvents / 2))
  return { events, bytes: Math.floor(replay.maxBytes / 2) }
}

/**
 * A run's fold, kept lazily: events are noted as they come and folded in when a state is asked for, and never
 * beyond what is stored, because nobody may be shown what may still be lost (R1).
 */
export class FoldKeeper {
  readonly #fold: RunFold
  #state: unknown
  #seq: number
  #savedSeq: number
  #savedSize = 0
  #size = 0
  #notes: EventBlock[] = []
  #noted: number
  #unsavedBytes = 0

  constructor (fold: RunFold, run: RunRecord, from?: Fold) {
    this.#fold = fold
    this.#state = from === undefined ? fold.initial(run) : structuredClone(from.state)
    this.#seq = this.#savedSeq = this.#noted = from?.seq ?? 0
  }

  /** Sequence of the last stored fold: the log must keep everything after it. */
  get savedSeq (): number {
    return this.#savedSeq
  }

  /** Sequence up to which events were taken. */
  get noted (): number {
    return this.#noted
  }

  /** Takes events of the log; those that were taken already are passed over. */
  note (events: LogEvents): void {
    if (events.length === 0) return
    const block = EventList.blockOf(events)
    if (block.lastSeq <= this.#noted) return
    for (let seq = Math.max(block.firstSeq, this.#noted + 1); seq <= block.lastSeq; seq++) this.#unsavedBytes += block.sizeAt(seq)
    this.#noted = block.lastSeq
    this.#notes.push(block)
  }

  /**
   * True when enough was stored since the last stored fold for another one. Where bytes decide, that is at least as much as
   * that fold was itself: large events would otherwise each have all that went before stored once more.
   */
  isDue (storedSeq: number, { events, bytes }: FoldCadence): boolean {
    return storedSeq - this.#savedSeq >= events || this.#unsavedBytes >= Math.max(bytes, this.#savedSize)
  }

  /** The state after `seq`, to be stored. */
  at (seq: number): Fold {
    this.#advance(seq)
    // Fold states are JSON by contract; a copy, because the next step may change it in place.
    const text = JSON.stringify(this.#state)
    this.#size = text.length
    return { seq: this.#seq, state: JSON.parse(text) as JsonValue }
  }

  /** The fold of `seq`, the one that was made last, is stored. */
  saved (seq: number): void {
    this.#savedSeq = Math.max(this.#savedSeq, seq)
    this.#savedSize = this.#size
    this.#unsavedBytes = 0
  }

  /** What a reader without a usable cursor is shown, and the sequence it then stands at. */
  snapshot (seq: number, run: RunRecord): { readonly seq: number, readonly events: readonly EventInit[] } {
    this.#advance(seq)
    return { seq: this.#seq, events: this.#fold.snapshot(this.#state, run) }
  }

  #advance (seq: number): void {
    while (this.#notes.length > 0 && this.#seq < seq) {
      const block = this.#notes[0] as EventBlock // there is one
      const last = Math.min(block.lastSeq, seq)
      for (let at = Math.max(block.firstSeq, this.#seq + 1); at <= last; at++) {
        this.#state = this.#fold.step(this.#state, block.at(at))
        this.#seq = at
      }
      if (last === block.lastSeq) this.#notes.shift()
    }
  }
}
