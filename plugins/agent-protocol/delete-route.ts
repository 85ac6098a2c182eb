import { type FastifyRequest } from 'fastify'
import { TaskError } from './errors.ts'
import { submissionOf } from './protocol.ts'
import { callerOf, findTask, type TaskScope } from './scope.ts'

/** `DELETE /tasks/{taskId}`: removes a task that is over; its id is free again. */
export async function handleDelete (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<void> {
  const { owner } = await callerOf(scope, request)
  const run = await findTask(scope, owner, taskId)
  if (!await scope.host.engine.delete(run)) throw new TaskError('not_terminal', `task is not over: ${taskId}`, { task_id: taskId })
  await scope.workspaces.remove(submissionOf(run.record).workspaceId)
  request.log.info({ taskId }, 'task deleted')
}
