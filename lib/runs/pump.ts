import { deferred } from './deferred.ts'

/** How pulling an iterator ended. `aborted` also where the agent returned or threw because of the abort. */
export type PumpEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw', readonly error: unknown }
  /** `isAbandoned`: the agent had not settled when the grace was over. */
  | { readonly kind: 'aborted', readonly isAbandoned: boolean }

/** What a pump is driven by. */
export interface PumpOptions<T> {
  readonly signal: AbortSignal
  /** Milliseconds between the abort and giving the iterator up; asked at the abort. */
  graceMs (): number
  /** Asked before each value is taken: `undefined` = take it, else it is taken when the promise resolves. */
  guard (): Promise<void> | undefined
  /** Called for each value, synchronously. What this and the two questions throw ends the pump as if the iterator had thrown it. */
  onValue (value: T): void
  /** Asked after each value: `undefined` = pull on, else wait, then ask again. */
  blocked (): Promise<void> | undefined
}

/**
 * Pulls an agent's iterator without a hop of its own: two handlers made once, no promise per event but the iterator's.
 * An abort ends it at once even when the iterator is idle (C15): `return()` is called, and what does not settle within
 * the grace is left behind, its late outcome caught and dropped.
 */
export class Pump<T> {
  readonly #options: PumpOptions<T>
  readonly #ended = deferred<PumpEnd>()
  #iterator: AsyncIterator<T> | undefined
  #isPulling = false
  #isReturning = false
  #isAborted = false
  #isOver = false
  #grace: NodeJS.Timeout | undefined

  constructor (options: PumpOptions<T>) {
    this.#options = options
  }

  /** Starts pulling; resolves once, never rejects. Call it once. */
  run (open: () => AsyncIterable<T>): Promise<PumpEnd> {
    const { signal } = this.#options
    if (signal.aborted) return Promise.resolve({ kind: 'aborted', isAbandoned: false })
    try {
      this.#iterator = open()[Symbol.asyncIterator]()
    } catch (error) {
      return Promise.resolve({ kind: 'threw', error })
    }
    signal.addEventListener('abort', this.#onAbort, { once: true })
    this.#pull()
    return this.#ended.promise
  }

  readonly #pull = (): void => {
    if (this.#isOver || this.#isAborted || this.#iterator === undefined) return
    this.#isPulling = true
    try {
      // Not `await`, and no race: a race would leave a reaction on the abort's promise for each event.
      Promise.resolve(this.#iterator.next()).then(this.#onResult, this.#onError)
    } catch (error) {
      this.#onError(error)
    }
  }

  readonly #onResult = (result: IteratorResult<T>): void => {
    if (this.#isOver) return
    let wait: Promise<void> | undefined
    try {
      if (result.done === true) {
        this.#finish(this.#isAborted ? { kind: 'aborted', isAbandoned: false } : { kind: 'returned' })
        return
      }
      wait = this.#options.guard()
    } catch (error) {
      this.#fail(error)
      return
    }
    const { value } = result
    if (wait === undefined) this.#take(value)
    else wait.then(() => { this.#take(value) }, this.#fail)
  }

  #take (value: T): void {
    this.#isPulling = false
    if (this.#isOver) return
    try {
      this.#options.onValue(value)
    } catch (error) {
      this.#fail(error)
      return
    }
    if (this.#isAborted) this.#settleAborted()
    else this.#advance()
  }

  readonly #advance = (): void => {
    if (this.#isOver || this.#isAborted) return
    try {
      const wait = this.#options.blocked()
      if (wait === undefined) this.#pull()
      else wait.then(this.#advance, this.#fail)
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly #onError = (error: unknown): void => {
    this.#isPulling = false
    this.#finish(this.#isAborted ? { kind: 'aborted', isAbandoned: false } : { kind: 'threw', error })
  }

  /** Our own side failed: the iterator is closed, and nobody waits for it. */
  readonly #fail = (error: unknown): void => {
    this.#return()
    this.#finish({ kind: 'threw', error })
  }

  readonly #onAbort = (): void => {
    this.#isAborted = true
    this.#grace = setTimeout(() => { this.#finish({ kind: 'aborted', isAbandoned: true }) }, this.#options.graceMs()).unref()
    this.#return()
    this.#settleAborted()
  }

  #return (): void {
    if (this.#iterator?.return === undefined) return
    this.#isReturning = true
    try {
      Promise.resolve(this.#iterator.return()).then(this.#onReturned, this.#onReturned)
    } catch {
      // A return() that throws has returned: what matters is that it was called.
      this.#isReturning = false
    }
  }

  readonly #onReturned = (): void => {
    this.#isReturning = false
    this.#settleAborted()
  }

  #settleAborted (): void {
    if (!this.#isPulling && !this.#isReturning) this.#finish({ kind: 'aborted', isAbandoned: false })
  }

  #finish (end: PumpEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#grace)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#ended.resolve(end)
  }
}
