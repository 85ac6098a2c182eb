import { type JsonObject, type JsonValue, MsgMetadata, textOf } from '../../lib/agent/index.ts'
import { type ExecutionEnd, type RunFailure } from '../../lib/runs/index.ts'
import { isEnded, type RunEndRecord, type RunRecord } from '../../lib/stores/index.ts'
import { type SentTaskEvent, type TaskStatus } from './wire.ts'

/** What a task's record keeps of its result. */
export interface TaskResult {
  readonly text: string
  readonly structured?: JsonValue
  readonly usage?: JsonObject
}

/** Texts of failures that the engine names, and the code that goes with them. */
const FAILURES: Readonly<Record<string, { readonly code: string, readonly error: string }>> = {
  NODE_LOST: { code: 'executor_lost', error: 'executor lost' },
  STORE_UNAVAILABLE: { code: 'store_unavailable', error: 'the task could not be stored' },
  BARRIER_OVERFLOW: { code: 'overflow', error: 'the agent went on for too long after its result' },
  timeout: { code: 'run_timeout', error: 'run timeout' },
  shutdown: { code: 'interrupted', error: 'interrupted: the server was closed' },
  disconnect: { code: 'interrupted', error: 'interrupted: nobody read the task any more' },
  superseded: { code: 'interrupted', error: 'interrupted' },
  agent: { code: 'interrupted', error: 'interrupted' }
}

/** Characters of an error that clients are told. */
const MAX_ERROR = 8_192

/** What of a task's detail its end depends on. */
export interface EndOptions {
  readonly exposeErrors: boolean
  readonly maxResult?: number
}

/** The one event that ends a task. A result that would drive it out of what is kept stands in the record alone, where waits and snapshots find it. */
export function terminalEvent (run: RunRecord, end: ExecutionEnd, { exposeErrors, maxResult = Infinity }: EndOptions): SentTaskEvent {
  const names = { taskId: run.clientId, agentId: run.agent }
  switch (end.kind) {
    case 'completed': {
      const { text, structured } = resultOf(end)
      const stopReason = stopReasonOf(end.reason)
      const isTold = text.length + (structured === undefined ? 0 : JSON.stringify(structured).length) <= maxResult
      return {
        type: 'STATUS',
        ...names,
        status: 'success',
        ...isTold && { result: text },
        ...isTold && structured !== undefined && { structuredResult: structured },
        ...stopReason !== undefined && { stopReason }
      }
    }
    case 'cancelled': return { type: 'STATUS', ...names, status: 'cancelled' }
    case 'timeout': return failedEvent(run, FAILURES.timeout as Failure) // in the table
    case 'interrupted': return failedEvent(run, FAILURES[end.why] as Failure) // every reason is in the table
    case 'failed': return failedEvent(run, failureOf(run, end.error, exposeErrors))
    // Every pause of a task is recorded, so that the task waits.
    case 'paused': return { type: 'STATUS', ...names, status: 'success', result: textOf(end.message) }
  }
}

interface Failure { readonly code: string, readonly error: string }

/** The event that ends a task whose owner cannot say it. */
export function failedEvent ({ clientId, agent }: RunRecord, { code, error }: Failure): SentTaskEvent {
  return { type: 'RUN_ERROR', taskId: clientId, agentId: agent, error, status: 'error', code }
}

/** A failure as clients are told it: what was thrown stays in the log, under the id that the text names. */
export function failureOf (run: RunRecord, { code, message, cause }: RunFailure, exposeErrors: boolean): Failure {
  const known = FAILURES[code]
  if (known !== undefined) return known
  if (exposeErrors && cause instanceof Error && cause.message !== '') return { code, error: cause.message.slice(0, MAX_ERROR).toWellFormed() }
  return { code, error: code === 'internal_error' ? `${message} (error id ${run.key.id})` : message.slice(0, MAX_ERROR).toWellFormed() }
}

/** What the record keeps of an end. */
export function endRecordOf (run: RunRecord, end: ExecutionEnd, exposeErrors: boolean): Partial<RunEndRecord> {
  if (end.kind === 'completed') return { result: resultOf(end) as unknown as JsonObject } // its members are JSON
  if (end.kind === 'cancelled' || end.kind === 'paused') return {}
  const { error = '', code = '' } = terminalEvent(run, end, { exposeErrors })
  return { message: error, code }
}

/** What a task is reported as (agent-protocol 3). A run that was cut by anything but its cancel has failed. */
export function statusOf (record: Pick<RunRecord, 'state' | 'end' | 'lastSeq'>): TaskStatus {
  const { state, end } = record
  switch (state) {
    case 'pending': return 'pending'
    case 'running': return 'running'
    case 'waiting': return isHeld(record) ? 'pending' : 'awaiting_confirm'
    case 'completed': return 'success'
    case 'cancelled': return end?.kind === 'cancelled' ? 'cancelled' : 'error'
    case 'failed': case 'lost': return 'error'
  }
}

/** Whether a task was made and not begun: it waits for its first step, and has told nothing. */
export function isHeld ({ state, lastSeq }: Pick<RunRecord, 'state' | 'lastSeq'>): boolean {
  return state === 'waiting' && lastSeq === 0
}

/** The error of a task that has failed. */
export function errorOf (record: RunRecord): Failure | undefined {
  if (!isEnded(record.state) || statusOf(record) !== 'error') return undefined
  const { code = 'internal_error', message = 'error', kind = '' } = record.end ?? {}
  return FAILURES[code] ?? FAILURES[kind] ?? { code, error: message }
}

/** The result of a task that has succeeded. */
export function resultIn ({ end }: RunRecord): TaskResult | undefined {
  return end?.result as unknown as TaskResult | undefined // written by endRecordOf()
}

/** Why the agent stopped, where that is not its own word. */
export function stopReasonOf (reason: string | undefined): string | undefined {
  return reason === undefined || reason === 'MODEL_STOP' ? undefined : reason
}

function resultOf ({ message, usage }: Extract<ExecutionEnd, { readonly kind: 'completed' }>): TaskResult {
  const structured = message.metadata?.[MsgMetadata.structuredOutput]
  return { text: textOf(message), ...structured !== undefined && { structured }, ...usage !== undefined && { usage: usage as JsonObject } }
}
