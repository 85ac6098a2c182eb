import { randomUUID } from 'node:crypto'
import { type FastifyRequest } from 'fastify'
import { type Agent, isObject, type JsonObject } from '../../lib/agent/index.ts'
import { type Run } from '../../lib/runs/index.ts'
import { TaskError } from './errors.ts'
import { executionSpec } from './execution.ts'
import { AgentLoan } from './loan.ts'
import { maxResultOf } from './options.ts'
import { type TaskDetail } from './projection.ts'
import { submissionOf, taskProtocol } from './protocol.ts'
import { goOn } from './resume.ts'
import { type Caller, type TaskScope } from './scope.ts'
import { parseSubmission, type Submission } from './submission.ts'
import { gateSessionOf, userIdOf } from './user-id.ts'

/** The request that a task waits on which was made and not begun. */
const START = 'start'

/** Asks for its first step and does nothing else: so a task that is only made is kept like one that waits, over restarts and on every node. */
const holding: Agent = {
  name: 'holding',
  capabilities: { resume: true, denyRules: true },
  async * stream () {
    yield { type: 'REQUIRE_INPUT', requests: [{ id: START, reason: 'first_step' }] }
  }
}

/** Makes a task whose agent begins with its first step (agent-protocol 12.2). */
export async function createHeldTask (scope: TaskScope, caller: Caller, body: { readonly input: unknown, readonly additionalInput: unknown }): Promise<Run> {
  const attributes = isObject(body.additionalInput) ? body.additionalInput : {}
  const { submission, fingerprint } = parseSubmission({ task_id: randomUUID(), input: body.input, context: { attributes, detail: 'full' } }, false)
  const place = { isQueued: false, ready: async () => {}, leave: () => {} }
  const userId = userIdOf(scope, caller, submission)
  const { prepareContext, ...spec } = executionSpec(scope, submission, new AgentLoan(scope, { submission, caller, userId, place }), userId)
  const detail: TaskDetail = { detail: 'full', hasPayload: true, exposeErrors: scope.options.exposeErrors, maxResult: maxResultOf(scope.options), sessionId: submission.sessionId, isHeld: true }
  const result = await scope.host.engine.start({
    ...spec,
    agent: holding,
    // It waits for as long as it is kept.
    interruptTtlMs: 0,
    protocol: taskProtocol,
    agentId: submission.agentId,
    clientId: submission.taskId,
    session: gateSessionOf(scope, caller, submission),
    owner: caller.owner,
    detail: { ...detail },
    stored: { ...submission, denyRules: [] },
    idempotency: { key: `task ${submission.taskId}`, fingerprint },
    onBusySession: 'queue'
  })
  if (result.kind === 'closing') throw new TaskError('closing', 'the server is closing')
  if (result.kind !== 'started') throw new TaskError('internal_error', 'internal error')
  await result.run.settled()
  return result.run
}

/** Begins a task that was only made, with the step's input or its own. Answers whether this call began it. */
export async function beginHeldTask (scope: TaskScope, run: Run, caller: Caller, input: string | undefined, request: FastifyRequest): Promise<boolean> {
  const stored = submissionOf(run.record)
  const submission: Submission = { ...stored, input: input ?? stored.input }
  const result = await goOn(scope, run, caller, { submission, decisions: [{ kind: 'input', requestId: START, status: 'resolved' }], request, isFirst: true })
  if (result.kind === 'closing') throw new TaskError('closing', 'the server is closing')
  return result.kind === 'resumed'
}

/** What a task was made with, in the classic's word. */
export function additionalInputOf (run: Run): JsonObject {
  const { attributes } = submissionOf(run.record).context
  return isObject(attributes) ? attributes as JsonObject : {} // plain JSON
}
