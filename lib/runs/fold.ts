import { type EventBlock, type EventInit, EventList } from '../bus/index.ts'
import { type Fold, type LogEvents, type RunRecord } from '../stores/index.ts'
import { type RunFold } from './protocol.ts'
import { type ReplayLimits } from './spec.ts'

/** Events between two stored folds (R12), so that a node which takes a run over has little to fold. */
export const FOLD_EVERY = 256

/** When the next fold is stored. */
export interface FoldCadence {
  /** After this many events, once they are twice as large as the last stored fold itself. */
  readonly events: number
  /** After this many events, whatever their size. */
  readonly maxEvents: number
  /** After this many bytes of payload, once they are as many as the last stored fold's. */
  readonly bytes: number
}

/**
 * The cadence of a run's folds: before the log is trimmed, so when half of what it may hold has come, and every 256 events
 * for whoever takes the run over, or rarer where the state is large: what there is to fold grows with what was folded. Nobody takes
 * over while this process lives where the store is its own.
 */
export function foldCadence (isShared: boolean, replay: ReplayLimits): FoldCadence {
  const maxEvents = Math.max(FOLD_EVERY, Math.floor(replay.maxEvents / 2))
  return { events: isShared ? FOLD_EVERY : maxEvents, maxEvents, bytes: Math.floor(replay.maxBytes / 2) }
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
    this.#state = from === undefined ? fold.initial(run) : JSON.parse(from.state)
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
   * True when enough was stored since the last stored fold for another one. That depends on how large that fold was itself, or
   * all that went before would be stored once more each time.
   */
  isDue (storedSeq: number, { events, maxEvents, bytes }: FoldCadence): boolean {
    const count = storedSeq - this.#savedSeq
    return count >= maxEvents || (count >= events && this.#unsavedBytes >= this.#savedSize * 2) || this.#unsavedBytes >= Math.max(bytes, this.#savedSize)
  }

  /** The state after `seq`, to be stored. */
  at (seq: number): Fold {
    this.#advance(seq)
    // Fold states are JSON by contract.
    const state = JSON.stringify(this.#state)
    this.#size = state.length
    return { seq: this.#seq, state }
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
