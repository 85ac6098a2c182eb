import { type FastifyRequest } from 'fastify'
import { parseAnswers } from './decisions.ts'
import { TaskError, taskNotFound } from './errors.ts'
import { type ResumeAnswer, resumeTask } from './resume.ts'
import { callerOf, lookUp, type TaskScope } from './scope.ts'

/** `POST /tasks/{taskId}/resume`: goes on with a task that waits for its caller. */
export async function handleResume (scope: TaskScope, request: FastifyRequest, taskId: string): Promise<ResumeAnswer> {
  if (!scope.options.hitlEnabled) throw new TaskError('hitl_disabled', 'HITL is disabled on this server', { task_id: taskId })
  const answers = parseAnswers(request.body)
  const caller = await callerOf(scope, request)
  const run = await lookUp(scope, caller.owner, taskId)
  if (run === undefined) {
    throw scope.options.isReference ? new TaskError('not_awaiting', `task is not awaiting confirmation: ${taskId}`, { task_id: taskId }) : taskNotFound(taskId)
  }
  const answer = await resumeTask(scope, run, caller, answers, request)
  request.log.info({ taskId, approved: answer.approved.length, denied: answer.denied.length }, 'task resumed')
  return answer
}
