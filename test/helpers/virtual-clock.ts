import { turn } from './run-engine.ts'

/** A timer as its setter holds it: enough of node's for `unref()` and the like. */
class VirtualTimer {
  readonly callback: () => void
  readonly everyMs: number | undefined
  due: number

  constructor (callback: () => void, due: number, everyMs: number | undefined) {
    this.callback = callback
    this.due = due
    this.everyMs = everyMs
  }

  ref (): this { return this }
  unref (): this { return this }
  hasRef (): boolean { return false }
}

type Callback = (...args: unknown[]) => void

/**
 * Time that passes only when a test says so: timers, `Date.now` and `performance.now`. Immediates, ticks and microtasks stay real, and have
 * their turns between any two timers. So seconds of waiting cost nothing, and every run of a test is the same.
 */
export class VirtualClock {
  #now = 0
  readonly #timers = new Set<VirtualTimer>()
  #restore: () => void = () => {}

  /** Puts the clock in the place of the real one, until {@link uninstall}. */
  static install (): VirtualClock {
    const clock = new VirtualClock()
    clock.#install()
    return clock
  }

  /** Milliseconds since the clock was installed. */
  get now (): number {
    return this.#now
  }

  uninstall (): void {
    this.#restore()
    this.#timers.clear()
  }

  /** Time goes by while something works: timers that come due have to wait. */
  pass (ms: number): void {
    this.#now += ms
  }

  /** Lets time pass, each timer at its moment. */
  async advance (ms: number): Promise<void> {
    const until = this.#now + ms
    await calm()
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#fire(next)
      await calm()
    }
    this.#now = until
  }

  /** Lets as much time pass as a promise needs; throws when that is more than `limitMs`. */
  async until<T> (promise: Promise<T>, limitMs: number, what: string): Promise<T> {
    const end = this.#now + limitMs
    const seen = { isSettled: false }
    const settle = (): void => { seen.isSettled = true }
    promise.then(settle, settle)
    await calm()
    while (!seen.isSettled) {
      const next = this.#next(end)
      if (next === undefined) throw new Error(`${what}: nothing has come of it after ${limitMs} ms`)
      this.#fire(next)
      await calm()
    }
    return await promise
  }

  #next (until: number): VirtualTimer | undefined {
    let next: VirtualTimer | undefined
    for (const timer of this.#timers) if (timer.due <= until && (next === undefined || timer.due < next.due)) next = timer
    return next
  }

  #fire (timer: VirtualTimer): void {
    this.#now = Math.max(this.#now, timer.due)
    if (timer.everyMs === undefined) this.#timers.delete(timer)
    else timer.due += timer.everyMs
    timer.callback()
  }

  #set (callback: Callback, ms: number | undefined, args: unknown[], repeats: boolean): VirtualTimer {
    const wait = Math.max(1, ms ?? 1)
    const timer = new VirtualTimer(() => { callback(...args) }, this.#now + wait, repeats ? wait : undefined)
    this.#timers.add(timer)
    return timer
  }

  #install (): void {
    const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
    const { now } = Date
    const startedAt = now()
    const clear = (real: (timer: never) => void) => (timer: unknown): void => {
      if (timer instanceof VirtualTimer) this.#timers.delete(timer)
      else real(timer as never)
    }
    Object.assign(globalThis, {
      setTimeout: (callback: Callback, ms?: number, ...args: unknown[]) => this.#set(callback, ms, args, false),
      setInterval: (callback: Callback, ms?: number, ...args: unknown[]) => this.#set(callback, ms, args, true),
      clearTimeout: clear(clearTimeout),
      clearInterval: clear(clearInterval)
    })
    Date.now = () => startedAt + Math.floor(this.#now)
    Object.defineProperty(performance, 'now', { value: () => this.#now, configurable: true })
    this.#restore = () => {
      Object.assign(globalThis, { setTimeout, setInterval, clearTimeout, clearInterval })
      Date.now = now
      Reflect.deleteProperty(performance, 'now')
    }
  }
}

/** Everything that needs no time has happened. */
async function calm (): Promise<void> {
  for (let i = 0; i < 3; i++) await turn()
}
