import { type FastifyReply, type FastifyRequest } from 'fastify'
import { listArtifacts, openArtifact, uploadArtifact } from './artifacts.ts'
import { readByteRange } from './byte-range.ts'
import { TaskError } from './errors.ts'
import { callerOf, findTask, queryOf, type TaskScope } from './scope.ts'
import { readUpload } from './upload.ts'
import { type Artifact } from './workspace.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200

/** `GET /tasks/{taskId}/artifacts`: the task's files, by path. */
export async function handleArtifacts (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<{ readonly artifacts: readonly Artifact[], readonly next_cursor?: string }> {
  const limit = readLimit(queryOf(request, 'limit'))
  const cursor = queryOf(request, 'cursor')
  const { owner } = await callerOf(scope, request)
  const run = await findTask(scope, owner, taskId)
  const { artifacts, next } = await listArtifacts(scope, run, cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString(), limit)
  return { artifacts, ...next !== undefined && { next_cursor: Buffer.from(next).toString('base64url') } }
}

/** `POST /tasks/{taskId}/artifacts`: a file for a task that is not over. */
export async function handleUpload (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<Artifact> {
  const { owner } = await callerOf(scope, request)
  const run = await findTask(scope, owner, taskId)
  const artifact = await uploadArtifact(scope, run, await readUpload(request, scope.options.maxArtifactBytes))
  request.log.info({ taskId, size: artifact.size }, 'artifact uploaded')
  return artifact
}

/** `GET /tasks/{taskId}/artifacts/{artifactId}`: a file's bytes, whole or one range of them. */
export async function handleDownload (scope: TaskScope, request: FastifyRequest, reply: FastifyReply, taskId: string, id: string): Promise<FastifyReply> {
  const { owner } = await callerOf(scope, request)
  const run = await findTask(scope, owner, taskId)
  const { artifact, read, close } = await openArtifact(scope, run, id)
  const { size, sha256, path } = artifact
  const etag = `"${sha256}"`
  // A stranger's file: saved, never shown.
  reply.header('etag', etag).header('accept-ranges', 'bytes').header('x-content-type-options', 'nosniff')
    .header('content-disposition', `attachment; filename*=UTF-8''${encodeURIComponent(path.split('/').at(-1) ?? 'artifact')}`)
    .header('last-modified', new Date(artifact.created_at).toUTCString())
  const { 'if-none-match': known, range: asked, 'if-range': ifRange } = request.headers
  if (known === etag) {
    await close()
    return await reply.code(304).send()
  }
  const range = ifRange === undefined || ifRange === etag ? readByteRange(asked, size) : undefined
  if (range === 'unsatisfiable') {
    await close()
    reply.header('content-range', `bytes */${size}`)
    throw new TaskError('range_not_satisfiable', `the file has ${size} bytes`, { task_id: taskId })
  }
  reply.type('application/octet-stream')
  if (range === undefined) return await reply.header('content-length', size).send(read())
  return await reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`).header('content-length', range.end - range.start + 1).send(read(range))
}

function readLimit (text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) throw new TaskError('invalid_query', `limit is a whole number from 1 to ${MAX_LIMIT}`)
  return limit
}
