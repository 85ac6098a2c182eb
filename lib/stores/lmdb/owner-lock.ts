import { randomBytes } from 'node:crypto'
import { link, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { DataDirectoryError, DataLockedError } from './errors.ts'

/** The most that fits into the address of a socket, on every system. */
const MAX_SOCKET_PATH = 100

/** Who owns a directory, as its file says. */
interface OwnerNote {
  readonly socket: string
  readonly pid: number
}

/** The proof that a directory is owned, until it is released or the process ends. */
export interface OwnerLock {
  release (): Promise<void>
}

/**
 * Takes the ownership of a data directory (R22). The proof is a socket in it that somebody listens on: it dies with its process,
 * whatever ends that. Which socket is the owner's says the file `owner-<n>` with the highest number. A file is made only if there is none
 * of its number yet, and files with a lower number than the owner's are all that is ever removed, so that of several who
 * find a dead owner at once exactly one succeeds it.
 *
 * @throws AGT_ERR_STORE_LOCKED, AGT_ERR_STORE_DIRECTORY
 */
export async function ownDirectory (directory: string): Promise<OwnerLock> {
  const name = `socket-${randomBytes(6).toString('hex')}`
  const server = await listen(directory, name)
  const release = async (): Promise<void> => {
    await new Promise<void>((resolve) => { server.close(() => { resolve() }) })
    await rm(join(directory, name), { force: true })
  }
  try {
    await succeed(directory, { socket: name, pid: process.pid })
    return { release }
  } catch (error) {
    await release()
    throw error
  }
}

async function succeed (directory: string, note: OwnerNote): Promise<void> {
  for (;;) {
    const newest = Math.max(0, ...await numbers(directory))
    const owner = newest === 0 ? undefined : await readNote(directory, newest)
    if (owner !== undefined && await isAlive(directory, owner.socket)) throw new DataLockedError(directory, describe(owner))
    if (!await isMade(directory, newest + 1, note)) continue
    const all = await numbers(directory)
    if (Math.max(...all) > newest + 1) {
      // Somebody was here and has cleaned up since this one looked.
      await rm(ownerFile(directory, newest + 1), { force: true })
      continue
    }
    await cleanUp(directory, all.filter((number) => number <= newest))
    return
  }
}

/** Makes the owner's file, whole or not at all. */
async function isMade (directory: string, number: number, note: OwnerNote): Promise<boolean> {
  const draft = join(directory, `${note.socket}.note`)
  await writeFile(draft, JSON.stringify(note))
  try {
    await link(draft, ownerFile(directory, number))
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

async function cleanUp (directory: string, old: readonly number[]): Promise<void> {
  for (const number of old) {
    const note = await readNote(directory, number)
    if (note !== undefined) await rm(join(directory, note.socket), { force: true })
    await rm(ownerFile(directory, number), { force: true })
  }
}

/** The numbers of the owners' files. */
async function numbers (directory: string): Promise<readonly number[]> {
  const names = await readdir(directory)
  return names.flatMap((name) => /^owner-(\d+)$/.exec(name)?.[1] ?? []).map(Number)
}

async function readNote (directory: string, number: number): Promise<OwnerNote | undefined> {
  try {
    const note: unknown = JSON.parse(await readFile(ownerFile(directory, number), 'utf8'))
    const isNote = typeof note === 'object' && note !== null && 'socket' in note && typeof note.socket === 'string' && /^socket-[0-9a-f]+$/.test(note.socket)
    return isNote ? note as OwnerNote : undefined // the pid is for people only
  } catch (error) {
    // Cleaned up meanwhile, or written to by somebody else: nobody's.
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

async function listen (directory: string, name: string): Promise<Server> {
  const server = createServer((socket) => { socket.destroy() })
  try {
    await atSocket(directory, name, async (path) => {
      await new Promise<void>((resolve, reject) => { server.once('error', reject).listen(path, resolve) })
    })
  } catch (error) {
    throw new DataDirectoryError(directory, 'no socket can be made in it, which is how its owner is known', { cause: error })
  }
  return server.unref()
}

/** Whether anybody listens. What can not be told counts as alive: two owners are worse than none. */
async function isAlive (directory: string, name: string): Promise<boolean> {
  return await atSocket(directory, name, async (path) => await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error) => { resolve(codeOf(error) !== 'ECONNREFUSED' && codeOf(error) !== 'ENOENT') })
  }))
}

/** Works with the address of a socket; Linux knows a way to those that are too long for one. */
async function atSocket<Result> (directory: string, name: string, work: (path: string) => Promise<Result>): Promise<Result> {
  if (process.platform === 'win32') return await work(`\\\\.\\pipe\\fastify-agents-${name}`)
  const path = join(directory, name)
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return await work(path)
  if (process.platform !== 'linux') throw new DataDirectoryError(directory, `its path is too long for a socket, which takes ${MAX_SOCKET_PATH} bytes`)
  const handle = await open(directory)
  try {
    return await work(`/proc/self/fd/${handle.fd}/${name}`)
  } finally {
    await handle.close()
  }
}

function ownerFile (directory: string, number: number): string {
  return join(directory, `owner-${number}`)
}

function describe ({ pid }: OwnerNote): string {
  return pid === process.pid ? 'another store of this process' : `the process ${pid}`
}

function codeOf (error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
