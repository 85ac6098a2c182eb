import { type Restart } from '../../lib/runs/index.ts'
import { executionSpec, follow } from './execution.ts'
import { AgentLoan, needsRequest } from './loan.ts'
import { submissionOf } from './protocol.ts'
import { ownerAsCaller, type TaskScope } from './scope.ts'
import { userIdOf } from './user-id.ts'

/**
 * Begins tasks again whose node is gone, if their agent is `restartable`, or was not asked yet because the task waited for its session: the factory is asked with the original submission, and told
 * that it is no resume. An agent that is made for each web request can not be had without one.
 */
export function restarting (scope: TaskScope): Restart {
  return async (record, begin) => {
    const submission = submissionOf(record)
    if (needsRequest(scope, submission.agentId)) return false
    const place = scope.places.enter()
    // Whoever takes it over next may have room.
    if (place === undefined) throw new Error('There is no room for a lost task.')
    const caller = ownerAsCaller(record.key.owner)
    const userId = userIdOf(scope, caller, submission)
    const loan = new AgentLoan(scope, { submission, caller, userId, place })
    let isTaken = false
    try {
      if (record.state !== 'pending' && !await loan.isRestartable()) return false
      const run = await begin(executionSpec(scope, submission, loan, userId))
      isTaken = true
      follow(scope, run, loan, place)
      return true
    } finally {
      if (!isTaken) loan.settle(record)
    }
  }
}
