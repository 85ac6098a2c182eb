import { type FastifyRequest } from 'fastify'
import { type ListQuery, type RunRecord, type RunState } from '../../lib/stores/index.ts'
import { statusOf } from './ending.ts'
import { TaskError } from './errors.ts'
import { taskDetailOf, taskProtocol } from './protocol.ts'
import { callerOf, localStateOf, queryOf, type TaskScope } from './scope.ts'
import { openInterrupts, reportedStatus, type SnapshotBody, snapshotBody } from './snapshot.ts'
import { readStatus, type TaskStatus } from './wire.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Pages of the store that one request looks through. */
const MAX_PAGES = 10

/** States in which a task may be reported as this. */
const STATES: Readonly<Record<TaskStatus, readonly RunState[]>> = {
  pending: ['pending', 'running', 'waiting'],
  running: ['running'],
  awaiting_confirm: ['waiting'],
  success: ['completed'],
  error: ['failed', 'lost', 'cancelled'],
  cancelled: ['cancelled']
}

/** A page of tasks, newest first. */
export interface ListAnswer {
  readonly tasks: readonly SnapshotBody[]
  readonly next_cursor?: string
}

/** `GET /tasks`: the caller's own tasks. */
export async function handleList (scope: TaskScope, request: FastifyRequest): Promise<ListAnswer> {
  const { host } = scope
  const status = readStatusQuery(queryOf(request, 'status'))
  const agent = queryOf(request, 'agent_id')
  const session = queryOf(request, 'session_id')
  const limit = readLimit(queryOf(request, 'limit'))
  let cursor = queryOf(request, 'cursor')
  const { owner } = await callerOf(scope, request)

  const fits = (record: RunRecord): boolean => (session === undefined || taskDetailOf(record).sessionId === session) &&
    (status === undefined || reportedStatus(record, localStateOf(scope, { record })) === status)
  const found: RunRecord[] = []
  for (let page = 0; page < MAX_PAGES; page++) {
    const query: ListQuery = {
      protocol: taskProtocol.name,
      limit: limit - found.length,
      ...agent !== undefined && { agent },
      ...status !== undefined && { states: STATES[status] },
      ...cursor !== undefined && { cursor }
    }
    const { runs, cursor: next } = await host.engine.list(owner, query)
    found.push(...runs.filter(fits))
    cursor = next
    if (cursor === undefined || found.length >= limit) break
  }
  const tasks = await Promise.all(found.map((record) => listed(scope, record)))
  return { tasks, ...cursor !== undefined && { next_cursor: cursor } }
}

async function listed (scope: TaskScope, record: RunRecord): Promise<SnapshotBody> {
  const open = statusOf(record) === 'awaiting_confirm' ? await openInterrupts(scope.host.store.interrupts, record) : []
  return snapshotBody(record, open, localStateOf(scope, { record }))
}

function readStatusQuery (text: string | undefined): TaskStatus | undefined {
  if (text === undefined) return undefined
  const status = readStatus(text)
  if (status === undefined) throw new TaskError('invalid_query', 'status is one of pending, running, awaiting_confirm, success, error, cancelled')
  return status
}

function readLimit (text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > MAX_LIMIT) throw new TaskError('invalid_query', `limit is a whole number from 1 to ${MAX_LIMIT}`)
  return limit
}
