import { type Owner, ownerText } from '../../lib/stores/index.ts'

/** Somebody who waits for a task. */
export interface Arrival {
  /** Resolves when it is time to look. */
  readonly over: Promise<void>
  /** Waits no longer; call it on every path. */
  stop (): void
}

/** Those who wait for a task that is not submitted yet. Holds nothing but them. */
export class Arrivals {
  readonly #waiting = new Map<string, Set<() => void>>()
  #size = 0

  /** How many wait. */
  get size (): number {
    return this.#size
  }

  /** Listens from now on for a task, until it is submitted to this process, `left` resolves, `graceMs` are over, or it is stopped. */
  wait (owner: Owner, taskId: string, graceMs: number, left: Promise<void>): Arrival {
    const key = ownerText(owner) + taskId
    let resolve = (): void => {}
    const over = new Promise<void>((_resolve) => { resolve = _resolve })
    const stop = (): void => {
      clearTimeout(timer)
      const waiters = this.#waiting.get(key)
      if (waiters?.delete(stop) !== true) return
      this.#size--
      if (waiters.size === 0) this.#waiting.delete(key)
      resolve()
    }
    const timer = setTimeout(stop, graceMs).unref()
    const waiters = this.#waiting.get(key)
    if (waiters === undefined) this.#waiting.set(key, new Set([stop]))
    else waiters.add(stop)
    this.#size++
    left.then(stop)
    return { over, stop }
  }

  /** The task is there. */
  arrived (owner: Owner, taskId: string): void {
    for (const done of [...this.#waiting.get(ownerText(owner) + taskId) ?? []]) done()
  }

  /** Nobody will come any more. */
  close (): void {
    for (const waiters of [...this.#waiting.values()]) for (const done of [...waiters]) done()
  }
}
