import { LocalSignals } from '../local-signals.ts'
import type { Store } from '../store.ts'
import { openDirectory } from './data-directory.ts'
import { type LmdbStoreOptions, resolveLmdbOptions } from './options.ts'
import { storeOn } from './store-on.ts'

/**
 * Opens a store in a data directory: durable, for one process on one machine. What was acknowledged survives the process, however it
 * ends. Close it when the server has closed: until then nobody else may open the directory.
 *
 * @throws AGT_ERR_OPTION_INVALID for an option that can not be used; AGT_ERR_STORE_LMDB_MISSING, AGT_ERR_STORE_DIRECTORY,
 * AGT_ERR_STORE_LOCKED, AGT_ERR_STORE_CORRUPT, each saying what to do
 */
export async function lmdbStore (options: LmdbStoreOptions): Promise<Store> {
  const resolved = resolveLmdbOptions(options)
  const directory = await openDirectory(resolved.path)
  const signals = new LocalSignals()
  const { ports, close } = storeOn(directory.table, resolved)
  let closed: Promise<void> | undefined
  return {
    ...ports,
    signals,
    isExclusive: true,
    close: () => {
      closed ??= (async () => {
        signals.close()
        await close()
        await directory.close()
      })()
      return closed
    }
  }
}
