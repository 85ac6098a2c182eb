export { lmdbStore } from './lmdb-store.ts'
export type { LmdbStoreOptions, LmdbSync } from './options.ts'
export { DataCorruptError, DataDirectoryError, DataLockedError, LmdbMissingError, StoreClosedError } from './errors.ts'
