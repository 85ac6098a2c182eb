import { type AgentInput, type Decision, newId } from '../../lib/agent/index.ts'
import { type Run, type RunSpec } from '../../lib/runs/index.ts'
import { type AgentLoan } from './loan.ts'
import { type Place } from './places.ts'
import { type TaskScope } from './scope.ts'
import { type Submission } from './submission.ts'

/** What every execution of a task is given, the first one and those after a pause. */
export function executionSpec (
  { options }: TaskScope, submission: Submission, loan: AgentLoan, userId: string | undefined, decisions?: readonly Decision[]
): Pick<RunSpec, 'agent' | 'input' | 'prepareContext' | 'userId' | 'sessionId' | 'denyRules' | 'onDisconnect' | 'runTimeoutMs' | 'cancelGraceMs' | 'writeTimeoutMs' |
  'holdGateWhileWaiting' | 'replay' | 'interruptTtlMs' | 'keepMs'> {
  return {
    agent: loan.make,
    input: decisions === undefined ? firstInput(submission) : { messages: [], history: 'append', resume: [...decisions] },
    prepareContext: loan.prepare,
    ...userId !== undefined && { userId },
    sessionId: submission.sessionId,
    denyRules: submission.denyRules,
    onDisconnect: options.onDisconnect,
    runTimeoutMs: options.runTimeoutMs,
    cancelGraceMs: options.cancelGraceMs,
    writeTimeoutMs: options.writeTimeoutMs,
    // A paused task keeps its conversation (R19).
    holdGateWhileWaiting: true,
    replay: options.replay,
    interruptTtlMs: options.confirmTtlMs,
    keepMs: options.taskTtlMs
  }
}

/** Follows an execution to its end: place and agent are given back, and a pause is watched. */
export function follow (scope: TaskScope, run: Run, loan: AgentLoan, place: Place): void {
  const { id } = run.record.key
  scope.placeOf.set(id, place)
  run.settled().then((record) => {
    if (scope.placeOf.get(id) === place) scope.placeOf.delete(id)
    loan.settle(record)
    if (record.state === 'waiting') scope.pauses.watch(run)
  })
}

function firstInput ({ input }: Submission): AgentInput {
  return { messages: [{ id: newId(), role: 'USER', content: [{ type: 'text', text: input }] }], history: 'append' }
}
