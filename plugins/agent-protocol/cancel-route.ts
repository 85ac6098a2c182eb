import { type FastifyRequest } from 'fastify'
import { isEnded } from '../../lib/stores/index.ts'
import { statusOf } from './ending.ts'
import { taskNotFound } from './errors.ts'
import { callerOf, findTask, lookUp, type TaskScope } from './scope.ts'

/** `POST /tasks/{taskId}/cancel`: stops a task for good, whatever it does. Again is the same. */
export async function handleCancel (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<Record<string, unknown>> {
  const { owner } = await callerOf(scope, request)
  const run = await lookUp(scope, owner, taskId)
  if (run === undefined) {
    if (!scope.options.isReference) throw taskNotFound(taskId)
    return {}
  }
  const { key, state } = run.record
  if (isEnded(state)) return { task_id: taskId, status: statusOf(run.record), cancel_requested: run.record.end?.kind === 'cancelled', already_terminal: true }
  scope.cancelling.add(key.id)
  try {
    await scope.host.engine.stop(run)
  } finally {
    scope.cancelling.delete(key.id)
  }
  const { record } = await findTask(scope, owner, taskId)
  // Its own end may have come first.
  return { task_id: taskId, status: statusOf(record), cancel_requested: true, ...isEnded(record.state) && statusOf(record) !== 'cancelled' && { already_terminal: true } }
}
