import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Run } from '../../lib/runs/index.ts'
import { acceptsEventStream, replyLeft } from '../../lib/sse/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { readCursor } from './cursor.ts'
import { TaskError, taskNotFound } from './errors.ts'
import { levelOf } from './projection.ts'
import { taskDetailOf } from './protocol.ts'
import { callerOf, lookUp, queryOf, type TaskScope } from './scope.ts'
import { streamTask } from './stream.ts'
import { isTaskId } from './task-id.ts'
import { type Detail, readDetail } from './wire.ts'

/** `GET /tasks/{taskId}/events`: the task's events from a sequence on, to its end. Leaving it changes nothing for the task. */
export async function handleEvents (scope: TaskScope, request: FastifyRequest, reply: FastifyReply, taskId: string): Promise<FastifyReply> {
  const { options, hub } = scope
  if (!options.streamingEnabled) throw new TaskError('streaming_disabled', 'streaming is disabled on this server', { task_id: taskId })
  if (!acceptsEventStream(request.headers.accept)) throw new TaskError('not_acceptable', 'this route answers with text/event-stream')
  const lastEventId = request.headers['last-event-id']
  const cursor = readCursor(queryOf(request, 'from_seq'), typeof lastEventId === 'string' ? lastEventId : undefined, options.resumePrecedence)
  const detail = readDetail(queryOf(request, 'detail'))
  const hasPayload = queryOf(request, 'payload') !== '0'
  const failsOnGap = queryOf(request, 'gap') === 'fail'
  const { owner } = await callerOf(scope, request)

  scope.host.admitStream(owner, reply)
  if (hub.size + scope.arrivals.size >= options.maxStreams) throw new TaskError('too_many_streams', 'this server has too many open streams')
  const isHead = request.method === 'HEAD'
  const run = await arrivedTask(scope, reply, owner, taskId, isHead ? 0 : options.subscribeGraceMs)
  if (run === undefined) throw taskNotFound(taskId)
  if (isHead) {
    hub.open(reply)
    return reply
  }
  const isStreaming = streamTask(scope, reply, run, { cursor, failsOnGap, hasPayload, narrow: narrowed(detail, taskDetailOf(run.record).detail) })
  // Nothing is left to be told: an EventSource that is told so stays away.
  return isStreaming ? reply : await reply.code(204).send()
}

/** The task, or the one that is submitted while its reader is there already: clients open both at once (agent-protocol 5.3). */
async function arrivedTask (scope: TaskScope, reply: FastifyReply, owner: Owner, taskId: string, graceMs: number): Promise<Run | undefined> {
  if (graceMs === 0 || !isTaskId(taskId)) return await lookUp(scope, owner, taskId)
  const run = await lookUp(scope, owner, taskId)
  if (run !== undefined) return run
  const { left, stop } = replyLeft(reply)
  // First listen, then look: it may come in between.
  const arrival = scope.arrivals.wait(owner, taskId, graceMs, left)
  try {
    return await lookUp(scope, owner, taskId) ?? await arrival.over.then(() => lookUp(scope, owner, taskId))
  } finally {
    arrival.stop()
    stop()
  }
}

/** A detail can only be narrowed; everything else is the submitter's. */
function narrowed (asked: Detail | undefined, ceiling: Detail): Detail | undefined {
  return asked !== undefined && levelOf(asked) < levelOf(ceiling) ? asked : undefined
}
