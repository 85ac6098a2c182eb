const FIRST_PAUSE_MS = 25
const LAST_PAUSE_MS = 200

/**
 * Does something that is harmless to repeat, again and again until it succeeds or `patienceMs` has passed; then rejects with the last
 * error. A first attempt is always made, and always ends by its own deadline. `isOver`: nobody wants it any more.
 */
export async function insist<T> (work: () => Promise<T>, patienceMs: number, isOver: () => boolean = never): Promise<T> {
  const until = performance.now() + patienceMs
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS)) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() >= until || isOver()) throw error
      await new Promise<void>((resolve) => { setTimeout(resolve, pauseMs).unref() })
      if (isOver()) throw error
    }
  }
}

function never (): boolean {
  return false
}
