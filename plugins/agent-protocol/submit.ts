import { type FastifyRequest } from 'fastify'
import { isObject } from '../../lib/agent/index.ts'
import { type Run, type StartResult } from '../../lib/runs/index.ts'
import { isEnded } from '../../lib/stores/index.ts'
import { statusOf } from './ending.ts'
import { TaskError } from './errors.ts'
import { executionSpec, follow } from './execution.ts'
import { AgentLoan } from './loan.ts'
import { maxResultOf } from './options.ts'
import { type TaskDetail } from './projection.ts'
import { taskProtocol } from './protocol.ts'
import { type Caller, localStateOf, lookUp, type TaskScope } from './scope.ts'
import { reportedStatus } from './snapshot.ts'
import { type ParsedSubmission } from './submission.ts'
import { gateSessionOf, userIdOf } from './user-id.ts'
import { type TaskStatus } from './wire.ts'

/** Answer to a submission. */
export interface SubmitAnswer {
  readonly task_id: string
  readonly status: TaskStatus
  readonly duplicate?: true
}

/** Submits a task, once whatever comes twice (R15). @throws AGT_ERR_TASK_*: why nothing was started */
export async function submitTask (scope: TaskScope, caller: Caller, parsed: ParsedSubmission, request: FastifyRequest): Promise<SubmitAnswer> {
  const { taskId } = parsed.submission
  // Also a task that waits for longer than a start is remembered.
  const known = await lookUp(scope, caller.owner, taskId)
  if (known !== undefined) return duplicate(scope, known, parsed.fingerprint)
  await checkSession(scope, caller, parsed)
  const run = await start(scope, caller, parsed, request)
  if ('duplicate' in run) return duplicate(scope, run.duplicate, parsed.fingerprint)
  scope.arrivals.arrived(caller.owner, taskId)
  return { task_id: taskId, status: 'pending' }
}

async function start (scope: TaskScope, caller: Caller, parsed: ParsedSubmission, request: FastifyRequest): Promise<Run | { readonly duplicate: Run }> {
  const { submission, fingerprint } = parsed
  const { taskId } = submission
  const userId = userIdOf(scope, caller, submission)
  const place = scope.places.enter()
  if (place === undefined) throw new TaskError('overloaded', 'too many tasks are waiting to run', { task_id: taskId })
  let isTaken = false
  try {
    const loan = new AgentLoan(scope, { submission, caller, userId, place, request })
    const detail: TaskDetail = { detail: parsed.detail, hasPayload: parsed.hasPayload, exposeErrors: scope.options.exposeErrors, maxResult: maxResultOf(scope.options), sessionId: submission.sessionId }
    const result = await scope.host.engine.start({
      ...executionSpec(scope, submission, loan, userId),
      protocol: taskProtocol,
      agentId: submission.agentId,
      clientId: taskId,
      session: gateSessionOf(scope, caller, submission),
      owner: caller.owner,
      detail: { ...detail },
      stored: { ...submission, denyRules: submission.denyRules.map((rule) => ({ ...rule })) },
      idempotency: { key: `task ${taskId}`, fingerprint },
      onBusySession: 'queue'
    })
    if (result.kind === 'started') {
      isTaken = true
      follow(scope, result.run, loan, place)
    }
    return runOf(result, taskId)
  } finally {
    if (!isTaken) place.leave()
  }
}

function runOf (result: StartResult, taskId: string): Run | { readonly duplicate: Run } {
  switch (result.kind) {
    case 'started': return result.run
    case 'existing': return { duplicate: result.run }
    case 'conflict':
      if (result.run !== undefined) return { duplicate: result.run }
      throw new TaskError('task_conflict', `task_id is in use: ${taskId}`, { task_id: taskId })
    case 'closing': throw new TaskError('closing', 'the server is closing', { task_id: taskId })
    // Neither is said to a start that queues and answers nothing.
    case 'busy': case 'interrupts': throw new TaskError('internal_error', 'internal error', { task_id: taskId })
  }
}

/** A paused task keeps its session: a new one would wait for a person (DECISIONS 3). */
async function checkSession (scope: TaskScope, caller: Caller, { submission }: ParsedSubmission): Promise<void> {
  if (scope.options.onBusySession === 'queue') return
  const holder = await scope.host.store.gates.holder(caller.owner, gateSessionOf(scope, caller, submission))
  if (holder?.parked !== true) return
  const holding = isObject(holder.data) ? holder.data.clientId : undefined
  throw new TaskError('session_busy_confirm', `a task of this session is awaiting confirmation: ${submission.sessionId}`, {
    task_id: submission.taskId, session_id: submission.sessionId, ...typeof holding === 'string' && { waiting_task_id: holding }
  })
}

/** What a task is answered that was submitted before. Nothing is restarted (D5). */
function duplicate (scope: TaskScope, run: Run, fingerprint: string): SubmitAnswer {
  const { record } = run
  const taskId = record.clientId
  const isSame = record.fingerprint === fingerprint
  if (isEnded(record.state)) {
    throw new TaskError('task_finished', `task_id already finished: ${taskId}`, { task_id: taskId, status: statusOf(record), same_request: isSame })
  }
  const status = reportedStatus(record, localStateOf(scope, run))
  if (!isSame) throw new TaskError('task_conflict', `task_id is in use by another request: ${taskId}`, { task_id: taskId, status })
  return { task_id: taskId, status, duplicate: true }
}
