import createError from '@fastify/error'

/** The optional package is not there. */
export const LmdbMissingError = createError<[options?: { readonly cause: unknown }]>(
  'AGT_ERR_STORE_LMDB_MISSING', 'The LMDB store needs the package "lmdb"; install it with: npm install lmdb', 500)

/** The data directory can not be used as one. */
export const DataDirectoryError = createError<[path: string, why: string, options?: { readonly cause: unknown }]>(
  'AGT_ERR_STORE_DIRECTORY', 'The data directory %s can not be used: %s.', 500)

/** Somebody else owns the data directory (R22). */
export const DataLockedError = createError<[path: string, owner: string]>(
  'AGT_ERR_STORE_LOCKED', 'The data directory %s is in use by %s. One store owns a directory: close that one, or choose another directory.', 500)

/** What lies in the data directory is not what a store left there. */
export const DataCorruptError = createError<[path: string, why: string, options?: { readonly cause: unknown }]>(
  'AGT_ERR_STORE_CORRUPT', 'The data in %s can not be read: %s. Restore a backup, or move the directory away to begin anew.', 500)

/** The store was closed; nothing is read or written any more. */
export const StoreClosedError = createError<[]>(
  'AGT_ERR_STORE_CLOSED', 'The store is closed.', 503)
