import { type BusEvent, type EventInit } from '../bus/index.ts'
import { type Fold, type JsonValue, type RunRecord } from '../stores/index.ts'
import { type RunFold } from './protocol.ts'

/** Events between two stored folds (R12). */
export const FOLD_EVERY = 256

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
    if (event.seq > this.#seq) this.#notes.push(event)
  }

  /** True when enough was stored since the last stored fold for another one. */
  isDue (storedSeq: number): boolean {
    return storedSeq - this.#savedSeq >= FOLD_EVERY
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
