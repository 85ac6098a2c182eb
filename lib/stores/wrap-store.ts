import { type OperationName, type PortName, STORE_OPERATIONS } from './operations.ts'
import type { Store } from './store.ts'

/** Called in place of each operation; `call` performs it and may be called late, more than once, or not at all. */
export type Around = <Result>(operation: OperationName, call: () => Promise<Result>) => Promise<Result>

/** A store that does everything through `around`: for deadlines, faults, counters. */
export function wrapStore (store: Store, around: Around): Store {
  const wrapped: Record<string, unknown> = {
    ...store.isVolatile !== undefined && { isVolatile: store.isVolatile },
    ...store.isExclusive !== undefined && { isExclusive: store.isExclusive },
    close: () => around('close', () => store.close())
  }
  for (const port of Object.keys(STORE_OPERATIONS) as PortName[]) wrapped[port] = wrapPort(store, port, around)
  return wrapped as unknown as Store // every port with every method, by the type of STORE_OPERATIONS
}

function wrapPort (store: Store, port: PortName, around: Around): Record<string, unknown> {
  const methods = store[port] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>> // a port has asynchronous methods only
  const wrapped: Record<string, unknown> = {}
  for (const name of Object.keys(STORE_OPERATIONS[port])) {
    const operation = `${port}.${name}` as OperationName
    wrapped[name] = (...args: unknown[]) => around(operation, () => (methods[name] as (...args: unknown[]) => Promise<unknown>)(...args))
  }
  return wrapped
}
