import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test } from 'tap'
import { lmdbStore, type LmdbStoreOptions } from '../../lib/stores/lmdb/index.ts'
import { type Store } from '../../lib/stores/index.ts'

/** The path of a directory that does not exist yet and is removed with the test. */
export async function dataDir (t: Test): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'data-'))
  t.teardown(async () => { await rm(parent, { recursive: true, force: true }) })
  return join(parent, 'store')
}

/** A store in a directory of its own, closed with the test. */
export async function openLmdb (t: Test, options: Partial<LmdbStoreOptions> = {}): Promise<Store> {
  const store = await lmdbStore({ path: await dataDir(t), ...options })
  t.teardown(async () => { await store.close() })
  return store
}
