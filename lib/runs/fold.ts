import { type BusEvent, type EventInit } from '../bus/index.ts'
import { type Fold, type JsonValue, type RunRecord } from '../stores/index.ts'
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
 * The cadence of a run's folds. Nobody takes a run over from a store that ends with this process: there a fold is only
 * needed before the log is trimmed, and is stored when half of what the log may hold has come.
 */
export function foldCadence (isVolatile: boolean, replay: ReplayLimits): FoldCadence {
  if (!isVolatile) return { events: FOLD_EVERY, bytes: Infinity }
  return { events: Math.max(FOLD_EVERY, Math.floor(replay.maxEvents / 2)), bytes: Math.floor(replay.maxBytes / 2) }
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
  #notes: BusEvent[] = []
  #unsavedBytes = 0

  constructor (fold: RunFold, run: RunRecord, from?: Fold) {
    this.#fold = fold
    this.#state = from === undefined ? fold.initial(run) : structuredClone(from.state)
    this.#seq = from?.seq ?? 0
    this.#savedSeq = this.#seq
  }

  /** Sequence of the last stored fold: the log must keep everything after it. */
  get savedSeq (): number {
    return this.#savedSeq
  }

  /** Takes an event of the log; one that is folded in already is passed over. */
  note (event: BusEvent): void {
    if (event.seq <= this.#seq) return
    this.#notes.push(event)
    this.#unsavedBytes += event.data.length
  }

  /** True when enough was stored since the last stored fold for another one. */
  isDue (storedSeq: number, { events, bytes }: FoldCadence): boolean {
    return storedSeq - this.#savedSeq >= events || this.#unsavedBytes >= bytes
  }

  /** The state after `seq`, to be stored. */
  at (seq: number): Fold {
    this.#advance(seq)
    // fold states are JSON by contract; a copy, because the next step may change it in place.
    return { seq: this.#seq, state: structuredClone(this.#state) as JsonValue }
  }

  /** The fold of `seq` is stored. */
  saved (seq: number): void {
    this.#savedSeq = Math.max(this.#savedSeq, seq)
    this.#unsavedBytes = 0
  }

  /** What a reader without a usable cursor is shown, and the sequence it then stands at. */
  snapshot (seq: number, run: RunRecord): { readonly seq: number, readonly events: readonly EventInit[] } {
    this.#advance(seq)
    return { seq: this.#seq, events: this.#fold.snapshot(this.#state, run) }
  }

  #advance (seq: number): void {
    let count = 0
    for (const event of this.#notes) {
      if (event.seq > seq) break
      this.#state = this.#fold.step(this.#state, event)
      this.#seq = event.seq
      count++
    }
    if (count === this.#notes.length) this.#notes = []
    else this.#notes.splice(0, count)
  }
}
