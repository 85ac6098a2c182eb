import { mkdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { checkDataFile } from './data-file.ts'
import { DataCorruptError, DataDirectoryError } from './errors.ts'
import { keyOf, TAG } from './keys.ts'
import { importLmdb } from './package.ts'
import { ownDirectory } from './owner-lock.ts'
import { type Bytes, Table } from './table.ts'

/** Of what is written here. Raised when older versions could not read it any more. */
const FORMAT = 1

const FORMAT_KEY = keyOf(TAG.about, Buffer.from('format'))

/** Bytes of address space to begin with; LMDB takes more when it needs more. */
const FIRST_MAP = 64 * 1024 * 1024

/** A directory that is open and owned. */
export interface DataDirectory {
  readonly table: Table
  close (): Promise<void>
}

/**
 * Opens a data directory, made where it is absent, and owns it until it is closed.
 *
 * @throws AGT_ERR_STORE_LMDB_MISSING, AGT_ERR_STORE_DIRECTORY, AGT_ERR_STORE_LOCKED, AGT_ERR_STORE_CORRUPT
 */
export async function openDirectory (path: string): Promise<DataDirectory> {
  const { open } = await importLmdb()
  const directory = resolve(path)
  await makeDirectory(directory)
  const lock = await ownDirectory(directory).catch((error: unknown) => { throw asDirectoryError(directory, error) })
  try {
    await checkDataFile(directory, join(directory, 'data.mdb'))
    const table = await openTable(directory, () => open<Buffer, Buffer>({
      path: directory, noSubdir: false, keyEncoding: 'binary', encoding: 'binary', mapSize: FIRST_MAP
    }))
    return {
      table,
      async close () {
        await table.close()
        await lock.release()
      }
    }
  } catch (error) {
    await lock.release()
    throw asDirectoryError(directory, error)
  }
}

async function openTable (directory: string, open: () => Bytes): Promise<Table> {
  const table = new Table(open())
  try {
    await checkFormat(directory, table)
    return table
  } catch (error) {
    await table.close()
    throw error
  }
}

async function checkFormat (directory: string, table: Table): Promise<void> {
  const format = table.get(FORMAT_KEY)?.toString()
  if (format === String(FORMAT)) return
  if (format !== undefined) throw new DataCorruptError(directory, `its format is ${format}, and this version reads ${FORMAT}`)
  const [any] = table.keys({ from: Buffer.of(0), to: Buffer.of(0xff), limit: 1 })
  if (any !== undefined) throw new DataCorruptError(directory, 'data.mdb was written by something else')
  await table.transaction(() => { table.put(FORMAT_KEY, Buffer.from(String(FORMAT))) })
}

/** Step by step: on some file systems Node's recursive way never ends. */
async function makeDirectory (directory: string): Promise<void> {
  try {
    const found = await stat(directory)
    if (!found.isDirectory()) throw new DataDirectoryError(directory, 'it is a file')
    return
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw asDirectoryError(directory, error)
  }
  await makeDirectory(dirname(directory))
  try {
    await mkdir(directory, { mode: 0o700 })
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (!isThere) throw asDirectoryError(directory, error)
  }
}

/** Our own errors as they are, others with what the system says. */
function asDirectoryError (directory: string, error: unknown): unknown {
  if (error instanceof Error && 'code' in error && String(error.code).startsWith('AGT_ERR_')) return error
  return new DataDirectoryError(directory, error instanceof Error ? error.message : String(error), { cause: error })
}
