import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lmdbStore } from '../../../lib/stores/lmdb/index.ts'
import { agUiWith } from './ag-ui.ts'

/** The AG-UI plugin as `ag-ui`, with everything kept in LMDB. */
export const agUiLmdbPeer = agUiWith('ag-ui-lmdb', async () => {
  const path = await mkdtemp(join(tmpdir(), 'bench-lmdb-'))
  const store = await lmdbStore({ path })
  // The server is killed: its files go with it once they have no name.
  await rm(path, { recursive: true })
  return store
})
