import { type Caller, type TaskScope } from './scope.ts'
import { type Submission } from './submission.ts'

/** The user that an execution is for: the principal where there is one, unless the caller is trusted to name another. */
export function userIdOf ({ options }: TaskScope, { principal }: Caller, { userId }: Submission): string | undefined {
  if (principal === undefined) return userId
  return options.trustContextUserId ? userId ?? principal.id : principal.id
}

/** The session of a submission as the gate knows it: two users' sessions of one name are two (agent-protocol 6.4). */
export function gateSessionOf ({ options }: TaskScope, { principal }: Caller, { userId, sessionId }: Submission): string {
  // A principal is part of every key already.
  const isNamed = userId !== undefined && (principal === undefined || options.trustContextUserId)
  return isNamed ? JSON.stringify([userId, sessionId]) : sessionId
}
