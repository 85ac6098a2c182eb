import { abortError } from './http-request.ts'

/** Waits; ends early, with the signal's reason, when the signal fires. Keeps no process alive. */
export async function pause (ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(abortError(signal?.reason))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms).unref()
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
