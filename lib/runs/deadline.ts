import { StoreUnavailableError, wrapStore, type OperationName, type Store } from '../stores/index.ts'

interface Call { readonly until: number, readonly expire: () => void }

/** Told of each call that has settled, and how long it took. Must not throw. */
export type OnCall = (operation: OperationName, ms: number, outcome: 'ok' | 'failed' | 'late') => void

/**
 * Deadlines of store calls (R9). One timer serves all calls of an engine, and none runs while nothing is in flight: a
 * call costs one promise, not a timer of its own.
 */
export class Deadlines {
  readonly #limitMs: number
  readonly #onCall: OnCall | undefined
  readonly #calls = new Set<Call>()
  #timer: NodeJS.Timeout | undefined

  /** @param limitMs milliseconds after which a call counts as failed; noticed up to a quarter of that later. */
  constructor (limitMs: number, onCall?: OnCall) {
    this.#limitMs = limitMs
    this.#onCall = onCall
  }

  /** A store of which every call settles in time. The wrapped store stays its owner's. */
  bound (store: Store): Store {
    return wrapStore(store, (operation, call) => this.run(operation, call))
  }

  /**
   * The outcome of `call`, or a rejection when it takes too long; a late outcome is dropped. The store's own coded errors
   * pass. @throws AGT_ERR_STORE_UNAVAILABLE
   */
  run<T> (operation: OperationName, call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const entry: Call = {
        until: performance.now() + this.#limitMs,
        expire: () => {
          this.#onCall?.(operation, this.#limitMs, 'late')
          reject(new StoreUnavailableError(operation))
        }
      }
      const settle = (outcome: 'ok' | 'failed'): void => {
        // What was given up has been told already.
        if (this.#calls.delete(entry)) this.#onCall?.(operation, performance.now() - entry.until + this.#limitMs, outcome)
      }
      const fail = (error: unknown): void => {
        settle('failed')
        reject(isCoded(error) ? error : new StoreUnavailableError(operation, { cause: error }))
      }
      this.#calls.add(entry)
      this.#timer ??= this.#arm()
      try {
        call().then((value) => {
          if (!this.#calls.has(entry)) undo(operation, value)
          settle('ok')
          resolve(value)
        }, fail)
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Stops the timer; calls in flight are left to themselves. */
  close (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm (): NodeJS.Timeout {
    return setTimeout(this.#tick, Math.max(1, this.#limitMs / 4)).unref()
  }

  readonly #tick = (): void => {
    const now = performance.now()
    for (const call of this.#calls) {
      if (call.until > now) continue
      this.#calls.delete(call)
      call.expire()
    }
    this.#timer = this.#calls.size > 0 ? this.#arm() : undefined
  }
}

/** A subscription that came too late has nobody who would end it. */
function undo (operation: OperationName, result: unknown): void {
  if (operation === 'signals.subscribe' && typeof result === 'function') result()
}

function isCoded (error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('AGT_ERR_')
}
