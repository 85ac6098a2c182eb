import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Run } from '../../lib/runs/index.ts'
import { isEnded } from '../../lib/stores/index.ts'
import { TaskError } from './errors.ts'
import { submissionOf } from './protocol.ts'
import { type TaskScope } from './scope.ts'
import { type Artifact, artifactId, type NewArtifact } from './workspace.ts'

/** The artifact that a task's own events are. */
const LOG_PATH = 'run.log'

/** A piece of an artifact's bytes. */
export interface ByteRange {
  readonly start: number
  /** The last byte. */
  readonly end: number
}

/** An artifact whose bytes can be read. */
export interface OpenArtifact {
  readonly artifact: Artifact
  /** Reads it once, whole or in part; the file is closed with the stream. */
  read (range?: ByteRange): Readable
  /** Not read after all. */
  close (): Promise<void>
}

/** A page of a task's artifacts, by path; after the end the log of its events is one of them. */
export async function listArtifacts ({ workspaces }: TaskScope, run: Run, after: string | undefined, limit: number): Promise<{ readonly artifacts: readonly Artifact[], readonly next?: string }> {
  const { workspaceId } = submissionOf(run.record)
  const files = await workspaces.list(workspaceId)
  const hasLog = isEnded(run.record.state) && !files.some(({ path }) => path === LOG_PATH)
  const paths = [...files.map(({ path }) => path), ...hasLog ? [LOG_PATH] : []].sort()
  const rest = after === undefined ? paths : paths.filter((path) => path > after)
  const page = rest.slice(0, limit)
  const artifacts = await Promise.all(page.map(async (path): Promise<Artifact> => {
    const file = files.find((candidate) => candidate.path === path)
    return file === undefined ? logArtifact(run) : await workspaces.describe(workspaceId, file)
  }))
  const last = page.at(-1)
  return { artifacts, ...rest.length > page.length && last !== undefined && { next: last } }
}

/** Opens an artifact. @throws AGT_ERR_TASK_ARTIFACT_NOT_FOUND */
export async function openArtifact ({ workspaces }: TaskScope, run: Run, id: string): Promise<OpenArtifact> {
  const { workspaceId } = submissionOf(run.record)
  const file = (await workspaces.list(workspaceId)).find((candidate) => candidate.id === id)
  if (file === undefined) {
    if (id !== artifactId(LOG_PATH) || !isEnded(run.record.state)) throw new TaskError('artifact_not_found', 'artifact not found', { task_id: run.record.clientId })
    const bytes = logBytes(run)
    return { artifact: logArtifact(run), read: (range) => Readable.from([range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)]), close: async () => {} }
  }
  const artifact = await workspaces.describe(workspaceId, file)
  const handle = await workspaces.open(workspaceId, file)
  return { artifact, read: (range) => handle.createReadStream(range ?? {}), close: () => handle.close() }
}

/** Takes a file from outside, for a task that is not over. @throws AGT_ERR_TASK_TASK_FINISHED, AGT_ERR_TASK_PAYLOAD_TOO_LARGE, AGT_ERR_TASK_INVALID_PATH */
export async function uploadArtifact ({ workspaces }: TaskScope, run: Run, artifact: NewArtifact): Promise<Artifact> {
  const { record } = run
  if (isEnded(record.state)) throw new TaskError('task_finished', `task_id already finished: ${record.clientId}`, { task_id: record.clientId })
  return await workspaces.write({ id: submissionOf(record).workspaceId, owner: record.key.owner, taskId: record.clientId }, artifact, false)
}

function logArtifact (run: Run): Artifact {
  const bytes = logBytes(run)
  return {
    artifact_id: artifactId(LOG_PATH),
    path: LOG_PATH,
    size: bytes.byteLength,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    mime: 'application/x-ndjson',
    agent_created: true,
    created_at: new Date(run.record.endedAt ?? run.record.updatedAt).toISOString()
  }
}

/** The events that are kept, one a line. */
function logBytes ({ topic }: Run): Buffer {
  return Buffer.from(topic.read(0).map(({ seq, data }) => `{"seq":${seq},${data.slice(1)}\n`).join(''))
}
