/** A promise and the way to settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  resolve (value: T): void
}

/** A promise that its holder resolves; again is harmless. */
export function deferred<T> (): Deferred<T> {
  let settle: (value: T) => void = () => {}
  const promise = new Promise<T>((resolve) => { settle = resolve })
  return { promise, resolve: (value) => { settle(value) } }
}
