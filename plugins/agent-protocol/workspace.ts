import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, mkdtemp, open, opendir, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { contextKey } from '../../lib/agent/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { readArtifactPath } from './artifact-path.ts'
import { TaskError } from './errors.ts'

/** A file that an agent publishes, or that somebody uploads. */
export interface NewArtifact {
  /** Where it stands in the workspace: relative, `/` between the parts. */
  readonly path: string
  readonly body: string | Uint8Array
  /** @default 'application/octet-stream' */
  readonly mime?: string
}

/** A file of a task, as it is listed. */
export interface Artifact {
  readonly artifact_id: string
  readonly path: string
  readonly size: number
  readonly sha256: string
  readonly mime: string
  readonly agent_created: boolean
  readonly created_at: string
}

/** A task's own directory. It is made when it is asked for. */
export interface TaskWorkspace {
  /** Absolute path of the directory; what is written there is listed as the task's artifacts. */
  directory (): Promise<string>
}

/** Key under which an agent finds the directory of its task. */
export const taskWorkspaceKey = contextKey<TaskWorkspace>('TaskWorkspace')

/** Key under which an agent finds the function that publishes a file of its task. */
export const publishArtifactKey = contextKey<(artifact: NewArtifact) => Promise<Artifact>>('publishArtifact')

/** Limits of the workspaces, in bytes. */
export interface WorkspaceLimits {
  readonly maxWorkspaceBytes: number
  readonly maxArtifactBytes: number
}

/** Whose a workspace is. */
export interface WorkspaceTask {
  /** Name of the workspace. */
  readonly id: string
  readonly owner: Owner
  readonly taskId: string
}

/** A regular file of a workspace. */
export interface WorkspaceFile {
  readonly id: string
  readonly path: string
  readonly size: number
  readonly changedAt: number
}

interface Note { readonly mime: string, readonly byAgent: boolean, readonly at: number }

/** Files that are listed of one task, whatever more there are. */
const MAX_FILES = 10_000
/** Notes beside the files: what kind they are, and who made them. */
const NOTES = 'artifacts.json'
/** Whose the workspace is, written when it is made. */
const TASK = 'task.json'
const OCTETS = 'application/octet-stream'

/** The workspaces of all tasks: one directory each, under one root. */
export class Workspaces {
  readonly #limits: WorkspaceLimits
  readonly #given: string | undefined
  #root: Promise<string> | undefined

  /** @param root absent: a temporary directory, which goes with the server. */
  constructor (root: string | undefined, limits: WorkspaceLimits) {
    this.#given = root
    this.#limits = limits
  }

  /** The directory that the agent of a task works in. */
  async directory (task: WorkspaceTask): Promise<string> {
    const directory = await this.#files(task.id)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const told = join(dirname(directory), TASK)
    await writeFile(told, JSON.stringify(task), { mode: 0o600, flag: 'wx' }).catch((error: NodeJS.ErrnoException) => { if (error.code !== 'EEXIST') throw error })
    return directory
  }

  /** Writes a file whole, or not at all. @throws AGT_ERR_TASK_INVALID_PATH, AGT_ERR_TASK_PAYLOAD_TOO_LARGE */
  async write (task: WorkspaceTask, { path: given, body, mime = OCTETS }: NewArtifact, byAgent: boolean): Promise<Artifact> {
    const path = readArtifactPath(given)
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (bytes.byteLength > this.#limits.maxArtifactBytes) throw tooLarge('the file', this.#limits.maxArtifactBytes)
    const { id } = task
    const directory = await this.directory(task)
    const others = (await this.list(id)).filter((file) => file.path !== path).reduce((sum, { size }) => sum + size, 0)
    if (others + bytes.byteLength > this.#limits.maxWorkspaceBytes) throw tooLarge('the workspace', this.#limits.maxWorkspaceBytes)
    const target = join(directory, ...path.split('/'))
    await makeParent(directory, target)
    const temporary = join(dirname(directory), `${randomUUID()}.part`)
    await writeFile(temporary, bytes, { mode: 0o600 })
    await rename(temporary, target).catch((error: unknown) => { throw new TaskError('invalid_path', 'a directory stands in the place of the file', { cause: String(error) }) })
    await this.#note(id, path, { mime, byAgent, at: Date.now() })
    const file = await fileAt(directory, path)
    if (file === undefined) throw new TaskError('internal_error', 'internal error')
    return await this.describe(id, file)
  }

  /** The regular files of a task, by path. Links are not followed. */
  async list (id: string): Promise<readonly WorkspaceFile[]> {
    const directory = await this.#files(id)
    const files: WorkspaceFile[] = []
    const folders = ['']
    for (let folder = folders.shift(); folder !== undefined && files.length < MAX_FILES; folder = folders.shift()) {
      const entries = await readdir(join(directory, folder), { withFileTypes: true }).catch(() => []) // not made, or gone meanwhile
      for (const entry of entries) {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isDirectory()) folders.push(path)
        const file = entry.isFile() ? await fileAt(directory, path) : undefined
        if (file !== undefined && file.size <= this.#limits.maxArtifactBytes) files.push(file)
      }
    }
    return files.sort((a, b) => a.path < b.path ? -1 : 1).slice(0, MAX_FILES)
  }

  /** What is told of a file. */
  async describe (id: string, file: WorkspaceFile): Promise<Artifact> {
    const note = (await this.#notes(id))[file.path]
    const handle = await this.open(id, file)
    const hash = createHash('sha256')
    try {
      for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer)
    } finally {
      await handle.close()
    }
    return {
      artifact_id: file.id,
      path: file.path,
      size: file.size,
      sha256: hash.digest('hex'),
      mime: note?.mime ?? OCTETS,
      agent_created: note?.byAgent ?? true,
      created_at: new Date(note?.at ?? file.changedAt).toISOString()
    }
  }

  /** Opens a file, if it is still one inside its workspace. The caller closes it. @throws AGT_ERR_TASK_ARTIFACT_NOT_FOUND */
  async open (id: string, { path }: WorkspaceFile): Promise<FileHandle> {
    const directory = await this.#files(id)
    const target = join(directory, ...path.split('/'))
    try {
      const [inside, root] = [await realpath(target), await realpath(directory)]
      if (!inside.startsWith(root + sep)) throw new Error('outside')
      return await open(target, constants.O_RDONLY | constants.O_NOFOLLOW)
    } catch (cause) {
      throw new TaskError('artifact_not_found', 'artifact not found', { cause: cause instanceof Error ? cause.name : 'unknown' })
    }
  }

  /** Removes a task's directory. Again is harmless. */
  async remove (id: string): Promise<void> {
    // Nothing was made under a root that nobody has asked for.
    if (this.#given === undefined && this.#root === undefined) return
    await rm(await this.#base(id), { recursive: true, force: true })
  }

  /** Removes the directories of tasks that are gone, but for those that were made less than `minAgeMs` ago. */
  async sweep (minAgeMs: number, isGone: (task: WorkspaceTask) => Promise<boolean>): Promise<void> {
    if (this.#given === undefined && this.#root === undefined) return
    for await (const { name } of await opendir(await this.#made())) {
      const base = await this.#base(name)
      const task = await readTask(join(base, TASK), minAgeMs)
      if (task?.id === name && await isGone(task)) await rm(base, { recursive: true, force: true })
    }
  }

  /** Removes a temporary root; one that was given stays. */
  async close (): Promise<void> {
    if (this.#given === undefined && this.#root !== undefined) await rm(await this.#root, { recursive: true, force: true })
  }

  async #base (id: string): Promise<string> {
    return join(await this.#made(), id)
  }

  async #files (id: string): Promise<string> {
    return join(await this.#base(id), 'files')
  }

  async #made (): Promise<string> {
    this.#root ??= this.#given === undefined ? mkdtemp(join(tmpdir(), 'fastify-agents-')) : mkdir(this.#given, { recursive: true, mode: 0o700 }).then(() => this.#given as string) // just seen
    return await this.#root
  }

  async #notes (id: string): Promise<Readonly<Record<string, Note>>> {
    try {
      const notes = JSON.parse(await readFile(join(await this.#base(id), NOTES), 'utf8')) as Record<string, Note> // written below
      return { __proto__: null, ...notes } as unknown as Record<string, Note>
    } catch {
      return {} // none yet
    }
  }

  async #note (id: string, path: string, note: Note): Promise<void> {
    const base = await this.#base(id)
    const temporary = join(base, `${randomUUID()}.part`)
    await writeFile(temporary, JSON.stringify({ ...await this.#notes(id), [path]: note }), { mode: 0o600 })
    await rename(temporary, join(base, NOTES))
  }
}

/** Id of the file at a path: the same for as long as it is there. */
export function artifactId (path: string): string {
  return createHash('sha256').update(path).digest('base64url').slice(0, 22)
}

/** Whose a workspace is; undefined for one that is not old enough, and for what is none. */
async function readTask (path: string, minAgeMs: number): Promise<WorkspaceTask | undefined> {
  try {
    const { mtimeMs } = await stat(path)
    return Date.now() - mtimeMs < minAgeMs ? undefined : JSON.parse(await readFile(path, 'utf8')) as WorkspaceTask // written by directory()
  } catch {
    return undefined // somebody else's file, or gone meanwhile
  }
}

async function fileAt (directory: string, path: string): Promise<WorkspaceFile | undefined> {
  const stats = await lstat(join(directory, ...path.split('/'))).catch(() => undefined) // gone meanwhile
  return stats?.isFile() === true ? { id: artifactId(path), path, size: stats.size, changedAt: stats.mtimeMs } : undefined
}

/** Makes the directories above a file; one that leads out of the workspace is refused. */
async function makeParent (directory: string, target: string): Promise<void> {
  const root = await realpath(directory)
  let parent = directory
  for (const segment of dirname(target).slice(directory.length).split(sep).filter((part) => part !== '')) {
    parent = join(parent, segment)
    await mkdir(parent, { mode: 0o700 }).catch(() => {}) // there already, or in the way: the next line tells
    const real = await realpath(parent).catch(() => '')
    const stats = await lstat(parent).catch(() => undefined)
    if (!real.startsWith(root + sep) || stats?.isDirectory() !== true) throw new TaskError('invalid_path', 'a part of the path is no directory of the workspace')
  }
}

function tooLarge (what: string, limit: number): TaskError {
  return new TaskError('payload_too_large', `${what} takes at most ${limit} bytes`)
}
