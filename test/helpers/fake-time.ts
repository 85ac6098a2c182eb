import { mock } from 'node:test'
import { type Test } from 'tap'
import { turn } from './run-engine.ts'

/** A clock that only its test moves: for stores, for the monotonic clock and for timers alike. */
export interface FakeTime {
  readonly now: () => number
  /** Lets time go by, in steps of at most `stepMs`, and everything happen that is due. */
  pass (ms: number, stepMs?: number): Promise<void>
  /** Lets time go by in which the process stands still: no timer fires. */
  jump (ms: number): void
}

/** Stops the time until the test is over. */
export function fakeTime (t: Test): FakeTime {
  let now = 1_000_000
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  t.intercept(performance, 'now', { value: () => now })
  t.teardown(() => { mock.timers.reset() })
  return {
    now: () => now,
    jump (ms) { now += ms },
    async pass (ms, stepMs = ms) {
      for (let left = ms; left > 0; left -= stepMs) {
        const step = Math.min(left, stepMs)
        now += step
        mock.timers.tick(step)
        await turns()
      }
    }
  }
}

/** Lets everything happen that does not wait for time. */
export async function turns (count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await turn()
}
