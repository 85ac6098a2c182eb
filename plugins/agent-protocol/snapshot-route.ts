import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Run } from '../../lib/runs/index.ts'
import { taskNotFound } from './errors.ts'
import { callerOf, localStateOf, lookUp, type TaskScope } from './scope.ts'
import { etagOf, openInterrupts, type SnapshotBody, snapshotBody } from './snapshot.ts'

/** `GET /tasks/{taskId}`: how a task stands; with `If-None-Match` only if that has changed. */
export async function handleSnapshot (scope: TaskScope, request: FastifyRequest, reply: FastifyReply, taskId: string): Promise<FastifyReply> {
  const { owner } = await callerOf(scope, request)
  const run = await lookUp(scope, owner, taskId)
  if (run === undefined) {
    if (!scope.options.isReference) throw taskNotFound(taskId)
    return await reply.send({ task_id: taskId, status: 'error', error: 'task not found' })
  }
  const text = JSON.stringify(await snapshotOf(scope, run))
  const etag = etagOf(text)
  reply.header('etag', etag).header('cache-control', 'no-cache')
  if (isKnown(request.headers['if-none-match'], etag)) return await reply.code(304).send()
  // Written already, because the validator is made of it.
  return await reply.type('application/json; charset=utf-8').send(text)
}

/** A task as it stands now. */
export async function snapshotOf (scope: TaskScope, run: Run): Promise<SnapshotBody> {
  const open = await openInterrupts(scope.host.store.interrupts, run.record)
  if (open.some(({ state }) => state === 'expired')) scope.pauses.expire(run)
  return snapshotBody(run.record, open, localStateOf(scope, run), run.topic)
}

function isKnown (header: string | undefined, etag: string): boolean {
  return header !== undefined && header.split(',').some((text) => text.trim().replace(/^W\//, '') === etag || text.trim() === '*')
}
