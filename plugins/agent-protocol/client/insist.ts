import { Backoff, pause } from '../../../lib/net/index.ts'
import { isPassing, TaskAnswerError } from './errors.ts'
import { type ResolvedOptions } from './options.ts'

/** How often and how patiently something is tried again. */
export type Patience = Pick<ResolvedOptions, 'maxAttempts' | 'retryBaseMs' | 'retryMaxMs'>

/** Makes the waits between attempts. */
export function backoffOf ({ retryBaseMs, retryMaxMs }: Patience): Backoff {
  return new Backoff({ baseMs: retryBaseMs, maxMs: retryMaxMs })
}

/**
 * Tries until it succeeds, fails for good, or has failed `maxAttempts` times; `work` is told how often it has failed already.
 * @throws the last failure, or the signal's reason
 */
export async function insist<T> (work: (failures: number) => Promise<T>, patience: Patience, signal: AbortSignal | undefined): Promise<T> {
  const backoff = backoffOf(patience)
  for (;;) {
    try {
      return await work(backoff.count)
    } catch (error) {
      signal?.throwIfAborted()
      if (!isPassing(error) || backoff.count + 1 >= patience.maxAttempts) throw error
      await pause(backoff.next(error instanceof TaskAnswerError ? error.retryAfterMs : 0), signal)
    }
  }
}
