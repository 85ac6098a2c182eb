import { type FastifyBaseLogger, type FastifyRequest } from 'fastify'
import { type Run } from '../../lib/runs/index.ts'
import { type SseHub } from '../../lib/sse/index.ts'
import { type Owner } from '../../lib/stores/index.ts'
import { type AgentsHost, ownerOf, type Principal } from '../agents/index.ts'
import { type Arrivals } from './arrivals.ts'
import { TaskError, taskNotFound } from './errors.ts'
import { type ResolvedAgentProtocolOptions } from './options.ts'
import { type Place, type Places } from './places.ts'
import { taskProtocol } from './protocol.ts'
import { type LocalState } from './snapshot.ts'
import { isTaskId } from './task-id.ts'
import { type Workspaces } from './workspace.ts'

/** What the routes of one registration share. */
export interface TaskScope {
  readonly host: AgentsHost
  readonly hub: SseHub
  readonly options: ResolvedAgentProtocolOptions
  readonly log: FastifyBaseLogger
  /** Streams that came before their task. */
  readonly arrivals: Arrivals
  readonly places: Places
  /** Places of the tasks that this process executes, by their run's id. */
  readonly placeOf: Map<string, Place>
  /** Runs that are being cancelled, by id. */
  readonly cancelling: Set<string>
  /** Open streams a run. */
  readonly readers: Map<string, number>
  readonly pauses: PauseWatch
  /** The tasks' directories. */
  readonly workspaces: Workspaces
  /** Fires when the server closes. */
  readonly closing: AbortSignal
}

/** Looks after pauses that may last too long. */
export interface PauseWatch {
  /** A pause has begun. */
  watch (run: Run): void
  /** Ends the pause as the options say, if its time is over. Never rejects. */
  expire (run: Run): Promise<void>
  /** It is over. */
  forget (id: string): void
}

/** Who asks, and whose tasks these are. */
export interface Caller {
  readonly principal: Principal | undefined
  readonly owner: Owner
}

/** Tells who asks. @throws AGT_ERR_UNAUTHENTICATED */
export async function callerOf ({ host }: TaskScope, request: FastifyRequest): Promise<Caller> {
  const principal = await host.principalOf(request)
  return { principal, owner: ownerOf(principal) }
}

/** Whose task it is, where nobody asks. */
export function ownerAsCaller (owner: Owner): Caller {
  const { id, tenant } = owner
  return { owner, principal: id === undefined ? undefined : { id, ...tenant !== undefined && { tenant } } }
}

/** The caller's task, if it is one. */
export async function lookUp ({ host }: TaskScope, owner: Owner, taskId: string): Promise<Run | undefined> {
  // What cannot have been submitted is not asked for.
  return isTaskId(taskId) ? await host.engine.find(owner, taskProtocol.name, taskId) : undefined
}

/** The caller's task. @throws AGT_ERR_TASK_TASK_NOT_FOUND */
export async function findTask (scope: TaskScope, owner: Owner, taskId: string): Promise<Run> {
  const run = await lookUp(scope, owner, taskId)
  if (run === undefined) throw taskNotFound(taskId)
  return run
}

/** What only this process knows of a task. */
export function localStateOf ({ placeOf, cancelling }: TaskScope, { record }: Pick<Run, 'record'>): LocalState {
  const place = placeOf.get(record.key.id)
  return { isExecuting: place !== undefined, isQueued: place?.isQueued === true, isCancelling: cancelling.has(record.key.id) }
}

/** A member of a query string, once. @throws AGT_ERR_TASK_INVALID_QUERY */
export function queryOf (request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, unknown>)[name] // Fastify's parser makes an object of texts and lists
  if (value === undefined || typeof value === 'string') return value
  throw new TaskError('invalid_query', `${name} is given more than once`)
}
