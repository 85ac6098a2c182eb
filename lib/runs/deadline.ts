import { StoreUnavailableError } from './errors.ts'

interface Call { readonly until: number, readonly expire: () => void }

/**
 * Deadlines of store calls (R9). One timer serves all calls of an engine, and none runs while nothing is in flight: a
 * call costs one promise, not a timer of its own.
 */
export class Deadlines {
  readonly #limitMs: number
  readonly #calls = new Set<Call>()
  #timer: NodeJS.Timeout | undefined

  /** @param limitMs milliseconds after which a call counts as failed; noticed up to a quarter of that later. */
  constructor (limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Milliseconds a call may take. */
  get limitMs (): number {
    return this.#limitMs
  }

  /** The outcome of `call`, or a rejection when it takes too long; a late outcome is dropped. @throws AGT_ERR_RUN_STORE_UNAVAILABLE */
  run<T> (call: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const entry: Call = { until: performance.now() + this.#limitMs, expire: () => { reject(new StoreUnavailableError()) } }
      this.#calls.add(entry)
      this.#arm()
      // A port may also throw before it returns a promise.
      Promise.resolve().then(call).then(
        (value) => { this.#calls.delete(entry); resolve(value) },
        (cause: unknown) => { this.#calls.delete(entry); reject(new StoreUnavailableError({ cause })) }
      )
    })
  }

  /** Stops the timer; calls in flight are left to themselves. */
  close (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #arm (): void {
    this.#timer ??= setTimeout(this.#tick, Math.max(1, this.#limitMs / 4)).unref()
  }

  readonly #tick = (): void => {
    this.#timer = undefined
    const now = performance.now()
    for (const call of this.#calls) {
      if (call.until > now) continue
      this.#calls.delete(call)
      call.expire()
    }
    if (this.#calls.size > 0) this.#arm()
  }
}
