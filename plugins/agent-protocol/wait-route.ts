import { type FastifyReply, type FastifyRequest } from 'fastify'
import { type Run } from '../../lib/runs/index.ts'
import { replyLeft } from '../../lib/sse/index.ts'
import { errorOf, resultIn, statusOf, stopReasonOf } from './ending.ts'
import { TaskError, taskNotFound } from './errors.ts'
import { callerOf, localStateOf, lookUp, queryOf, type TaskScope } from './scope.ts'
import { openInterrupts, pendingBody, reportedStatus } from './snapshot.ts'
import { waitForTask } from './wait.ts'
import { snapshotOf } from './snapshot-route.ts'

/** `GET /tasks/{taskId}/wait`: answers when the task is over or asks for something, or when the time is up. */
export async function handleWait (scope: TaskScope, request: FastifyRequest, reply: FastifyReply, taskId: string): Promise<Record<string, unknown>> {
  const seconds = readSeconds(queryOf(request, 'timeout_seconds'), scope.options)
  const { owner } = await callerOf(scope, request)
  const run = await lookUp(scope, owner, taskId)
  if (run === undefined) {
    if (!scope.options.isReference) throw taskNotFound(taskId)
    return { task_id: taskId, status: 'error', error: 'task not found' }
  }
  if (seconds === 0) return await snapshotOf(scope, run)
  const { left, stop } = replyLeft(reply)
  try {
    const settled = await waitForTask(scope, run, seconds * 1_000, left)
    if (settled !== undefined) return await settledBody(scope, settled)
  } finally {
    stop()
  }
  if (scope.closing.aborted) throw new TaskError('closing', 'the server is closing', { task_id: taskId })
  return {
    task_id: taskId,
    status: 'error',
    error: `wait timeout after ${seconds * 1_000} ms`,
    code: 'wait_timeout',
    timed_out: true,
    task_status: reportedStatus(run.record, localStateOf(scope, run))
  }
}

async function settledBody (scope: TaskScope, { record }: Run): Promise<Record<string, unknown>> {
  const status = statusOf(record)
  const own = { task_id: record.clientId, status }
  switch (status) {
    case 'success': {
      const { text = '', structured } = resultIn(record) ?? {}
      const stopReason = stopReasonOf(record.end?.code)
      return { ...own, result: text, ...structured !== undefined && { structured_result: structured }, ...stopReason !== undefined && { stop_reason: stopReason } }
    }
    case 'error': return { ...own, ...errorOf(record) }
    case 'awaiting_confirm': return { ...own, ...pendingBody(await openInterrupts(scope.host.store.interrupts, record)) }
    default: return own
  }
}

function readSeconds (text: string | undefined, { defaultWaitSeconds, maxWaitSeconds }: TaskScope['options']): number {
  if (text === undefined) return defaultWaitSeconds
  if (!/^\d{1,15}$/.test(text)) throw new TaskError('invalid_timeout', 'timeout_seconds is a whole number from 0 on')
  return Math.min(Number(text), maxWaitSeconds)
}
