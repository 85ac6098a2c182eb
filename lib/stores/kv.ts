import type { JsonValue } from '../agent/json.ts'
import type { Owner } from './run-key.ts'

/** The address of a small value. */
export interface KvKey {
  readonly owner: Owner
  /** What the value is for ("dedupe", say); keeps users of the store apart. */
  readonly space: string
  readonly key: string
}

export type SetIfAbsentResult =
  | { readonly kind: 'set' }
  | { readonly kind: 'exists', readonly value: JsonValue }

export type CompareAndSetResult =
  | { readonly kind: 'set' }
  | { readonly kind: 'differs', readonly value: JsonValue | undefined }

/**
 * Small values with a time to live, for idempotency keys and the like (R15). Atomic on one owner key. `ttlMs` is counted by the
 * store's clock from the write; a value that has run out is absent.
 */
export interface Kv {
  get (key: KvKey): Promise<JsonValue | undefined>

  /** Writes unconditionally. Repeating it is harmless. */
  set (key: KvKey, value: JsonValue, ttlMs: number): Promise<void>

  /**
   * Writes unless there is a value. A retry after a lost acknowledgement answers `exists` with the caller's own value: put something
   * random into it to know it again.
   */
  setIfAbsent (key: KvKey, value: JsonValue, ttlMs: number): Promise<SetIfAbsentResult>

  /**
   * Writes if the value is `expected` (`undefined`: absent). Values are compared as JSON text: pass what `get` gave. A retry after a lost
   * acknowledgement answers `differs` with the caller's own value.
   */
  compareAndSet (key: KvKey, expected: JsonValue | undefined, value: JsonValue, ttlMs: number): Promise<CompareAndSetResult>

  /** Idempotent. */
  delete (key: KvKey): Promise<void>
}
