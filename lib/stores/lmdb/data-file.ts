import { open, type FileHandle } from 'node:fs/promises'
import { DataCorruptError } from './errors.ts'

/** What every data file begins with, behind the head of its first page: LMDB's stamp and the version of its format. */
const STAMP = 0xbeefc0de
const FORMAT = 2
const STAMP_AT = 24

/** Where that says how large a page is, and where the tree begins. */
const PAGE_SIZE_AT = 48
const ROOT_AT = 136
const HEAD_BYTES = 192

/** The root of an empty tree. */
const NO_ROOT = 0xffff_ffff_ffff_ffffn

/**
 * Looks at a data file before LMDB does, which ends the process where it meets a file that is none. A file that is absent or empty
 * is a new one. @throws AGT_ERR_STORE_CORRUPT
 */
export async function checkDataFile (directory: string, path: string): Promise<void> {
  const file = await openIfThere(path)
  if (file === undefined) return
  try {
    const { size } = await file.stat()
    if (size === 0) return
    const head = Buffer.alloc(HEAD_BYTES)
    await file.read(head, 0, HEAD_BYTES, 0)
    if (head.readUInt32LE(STAMP_AT) !== STAMP) throw new DataCorruptError(directory, 'data.mdb is no data file')
    if ((head.readUInt32LE(STAMP_AT + 4) & 0xffff) !== FORMAT) throw new DataCorruptError(directory, 'data.mdb has the format of another LMDB')
    const pageSize = head.readUInt32LE(PAGE_SIZE_AT)
    const isSize = pageSize >= 256 && pageSize <= 65_536 && (pageSize & (pageSize - 1)) === 0
    if (!isSize || size < 2 * pageSize) throw new DataCorruptError(directory, 'data.mdb is cut off')
    for (const at of [0, pageSize / 2, pageSize]) await checkRoot(directory, file, at, pageSize, size)
  } finally {
    await file.close()
  }
}

/** The trees that a head of the file points to begin within the file. */
async function checkRoot (directory: string, file: FileHandle, at: number, pageSize: number, size: number): Promise<void> {
  const head = Buffer.alloc(HEAD_BYTES)
  await file.read(head, 0, HEAD_BYTES, at)
  if (head.readUInt32LE(STAMP_AT) !== STAMP) return
  const root = head.readBigUInt64LE(ROOT_AT)
  if (root !== NO_ROOT && (root + 1n) * BigInt(pageSize) > BigInt(size)) throw new DataCorruptError(directory, 'data.mdb is cut off')
}

async function openIfThere (path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
