import { StoreUnavailableError } from './errors.ts'
import type { OperationName } from './operations.ts'
import type { Store } from './store.ts'
import { wrapStore } from './wrap-store.ts'

/**
 * A store whose every operation settles within `ms` milliseconds, so that a backend that hangs never hangs its caller (R9). What fails or takes
 * longer rejects with `AGT_ERR_STORE_UNAVAILABLE`, the backend's error as `cause`; coded store errors pass. An operation that
 * was given up may still take effect. The wrapped store stays the caller's.
 */
export function withDeadline (store: Store, ms: number): Store {
  return wrapStore(store, (operation, call) => new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      reject(new StoreUnavailableError(operation))
    }, ms)
    timer.unref()
    settle(call).then((result) => {
      clearTimeout(timer)
      if (isLate) undo(operation, result)
      resolve(result)
    }, (error: unknown) => {
      clearTimeout(timer)
      reject(asStoreError(operation, error))
    })
  }))
}

/** The call, with what it throws synchronously as a rejection. */
async function settle<Result> (call: () => Promise<Result>): Promise<Result> {
  return await call()
}

/** A subscription that came too late has nobody who would end it. */
function undo (operation: OperationName, result: unknown): void {
  if (operation === 'signals.subscribe' && typeof result === 'function') result()
}

function asStoreError (operation: OperationName, error: unknown): unknown {
  const isCoded = error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('AGT_ERR_')
  return isCoded ? error : new StoreUnavailableError(operation, { cause: error })
}
