import { type FastifyRequest } from 'fastify'
import { type Decision } from '../../lib/agent/index.ts'
import { type ResumeResult, type Run } from '../../lib/runs/index.ts'
import { type Answers, matchAnswers } from './decisions.ts'
import { statusOf } from './ending.ts'
import { TaskError } from './errors.ts'
import { executionSpec, follow } from './execution.ts'
import { AgentLoan, needsRequest } from './loan.ts'
import { submissionOf } from './protocol.ts'
import { type Caller, type TaskScope } from './scope.ts'
import { type Submission } from './submission.ts'
import { confirmIdOf, openInterrupts } from './snapshot.ts'
import { userIdOf } from './user-id.ts'

/** Answer to a resume. */
export interface ResumeAnswer {
  readonly task_id: string
  readonly status: 'running'
  readonly approved: readonly string[]
  readonly denied: readonly string[]
  readonly unknown_decisions: readonly string[]
}

/** Goes on with a task that waits, with the answers of its caller. @throws AGT_ERR_TASK_*: why it does not */
export async function resumeTask (scope: TaskScope, run: Run, caller: Caller, answers: Answers, request: FastifyRequest): Promise<ResumeAnswer> {
  const { host, options } = scope
  const { record } = run
  if (statusOf(record) !== 'awaiting_confirm') throw notAwaiting(run)
  const open = await openInterrupts(host.store.interrupts, record)
  if (open.length === 0) throw notAwaiting(run)
  if (answers.confirmId !== undefined && answers.confirmId !== confirmIdOf(open)) {
    throw new TaskError('stale_confirm', 'the answers are about an earlier pause of the task', { task_id: record.clientId, confirm_id: confirmIdOf(open) })
  }
  const matched = matchAnswers(open.map(({ pending }) => pending), answers, { denyRules: submissionOf(record).denyRules, requireAll: options.requireAllDecisions, acceptRules: options.acceptRules })
  const result = await resumeWith(scope, run, caller, matched.decisions, request)
  if (result.kind !== 'resumed') throw refusal(scope, run, result)
  return { task_id: record.clientId, status: 'running', approved: matched.approved, denied: matched.denied, unknown_decisions: matched.unknown }
}

/** Goes on with a waiting task. @throws AGT_ERR_TASK_OVERLOADED, AGT_ERR_STORE_UNAVAILABLE */
export async function resumeWith (scope: TaskScope, run: Run, caller: Caller, decisions: readonly Decision[], request?: FastifyRequest): Promise<ResumeResult> {
  return await goOn(scope, run, caller, { submission: submissionOf(run.record), decisions, request, isFirst: false })
}

/** How a waiting task goes on. */
export interface GoOnOptions {
  readonly submission: Submission
  readonly decisions: readonly Decision[]
  readonly request: FastifyRequest | undefined
  /** Whether its agent is only now given the input. */
  readonly isFirst: boolean
}

/** Goes on with a waiting task, or begins one that was only made. @throws AGT_ERR_TASK_OVERLOADED, AGT_ERR_STORE_UNAVAILABLE */
export async function goOn (scope: TaskScope, run: Run, caller: Caller, { submission, decisions, request, isFirst }: GoOnOptions): Promise<ResumeResult> {
  const { host: { engine }, places, pauses } = scope
  const { record } = run
  const userId = userIdOf(scope, caller, submission)
  const place = places.enter()
  if (place === undefined) throw new TaskError('overloaded', 'too many tasks are waiting to run', { task_id: record.clientId })
  let isTaken = false
  try {
    const given = isFirst ? undefined : decisions
    const loan = new AgentLoan(scope, { submission, caller, userId, place, decisions: given, request })
    const { agent, ...spec } = executionSpec(scope, submission, loan, userId, given)
    // The instance that paused knows more than a new one, where it is still here.
    const isKept = !isFirst && needsRequest(scope, submission.agentId)
    let result = await engine.resume(run, { ...spec, ...!isKept && { agent }, decisions })
    if (result.kind === 'no-agent' && request !== undefined) result = await engine.resume(run, { ...spec, agent, decisions })
    if (result.kind === 'resumed') {
      isTaken = true
      pauses.forget(record.key.id)
      follow(scope, result.run, loan, place)
    }
    return result
  } finally {
    if (!isTaken) place.leave()
  }
}

function refusal (scope: TaskScope, run: Run, result: Exclude<ResumeResult, { readonly kind: 'resumed' }>): TaskError {
  switch (result.kind) {
    case 'closing': return new TaskError('closing', 'the server is closing')
    case 'no-agent': return new TaskError('agent_not_found', 'the agent that asked is gone', { task_id: run.record.clientId })
    case 'not-waiting': return notAwaiting(run)
    case 'interrupts':
      if (result.problem.kind !== 'expired') return notAwaiting(run)
      scope.pauses.expire(run)
      return new TaskError('confirm_expired', 'the time for an answer is over', { task_id: run.record.clientId, expired: result.problem.ids })
  }
}

function notAwaiting ({ record }: Run): TaskError {
  return new TaskError('not_awaiting', `task is not awaiting confirmation: ${record.clientId}`, { task_id: record.clientId })
}
