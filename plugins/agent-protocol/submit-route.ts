import { type FastifyRequest } from 'fastify'
import { callerOf, type TaskScope } from './scope.ts'
import { parseSubmission } from './submission.ts'
import { type SubmitAnswer, submitTask } from './submit.ts'

/** `POST /tasks`: submits a task. */
export async function handleSubmit (scope: TaskScope, request: FastifyRequest): Promise<SubmitAnswer> {
  const parsed = parseSubmission(request.body, scope.options.requireInput)
  const caller = await callerOf(scope, request)
  const answer = await submitTask(scope, caller, parsed, request)
  const { taskId, agentId } = parsed.submission
  request.log.info({ taskId, agentId, isDuplicate: answer.duplicate === true }, 'task submitted')
  return answer
}
