import type * as Lmdb from 'lmdb'
import { LmdbMissingError } from './errors.ts'

/** The optional package, loaded when a store is opened. @throws AGT_ERR_STORE_LMDB_MISSING */
export async function importLmdb (load: () => Promise<typeof Lmdb> = async () => await import('lmdb')): Promise<typeof Lmdb> {
  try {
    return await load()
  } catch (cause) {
    throw new LmdbMissingError({ cause })
  }
}
