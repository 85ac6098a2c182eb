import { pendingId } from '../../lib/agent/index.ts'
import { type RunProtocol } from '../../lib/runs/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { endRecordOf, failedEvent, failureOf } from './ending.ts'
import { levelOf, lineOf, type TaskDetail, TaskProjection } from './projection.ts'
import { type Submission } from './submission.ts'

/**
 * Tasks as the run engine knows them: one run a task, executions one after the other in one log. Everything that differs between two
 * registrations is stored with the run, so that one protocol serves all of them, on every node.
 */
export const taskProtocol: RunProtocol = {
  name: 'agent-protocol',
  resumesIn: 'run',
  idScope: 'owner',
  project: (run, { resumed }) => {
    const detail = taskDetailOf(run)
    return new TaskProjection(run, detail, detail.isHeld === true && !resumed)
  },
  // A request and a call may have the same id.
  interruptId: (pending) => pending.kind === 'input' ? `input ${pendingId(pending)}` : pendingId(pending),
  endRecord: (end, run) => endRecordOf(run, end, taskDetailOf(run).exposeErrors),
  lost: (run, failure) => {
    const event = failedEvent(run, failureOf(run, failure, false))
    return [{ data: lineOf(event), event: 'RUN_ERROR', level: levelOf('status'), isLine: true }]
  }
}

/** What is stored with a task of what its readers may see. */
export function taskDetailOf (run: RunRecord): TaskDetail {
  return run.detail as unknown as TaskDetail // written with the start
}

/** What was submitted. */
export function submissionOf (run: RunRecord): Submission {
  return run.input as unknown as Submission // written with the start
}
