import { createHash, randomUUID } from 'node:crypto'
import { isObject, type JsonObject, type JsonValue, type PermissionRule, toJson } from '../../lib/agent/index.ts'
import { readDenyRules } from './deny-rules.ts'
import { TaskError } from './errors.ts'
import { readTaskId } from './task-id.ts'
import { type Detail, readDetail } from './wire.ts'

/** Bytes of a submission's `context` as JSON. */
const MAX_CONTEXT_BYTES = 64 * 1024
/** How deep it may be nested. */
const MAX_CONTEXT_DEPTH = 16
/** Characters of names that callers choose. */
const MAX_NAME = 200

/** The agent that a submission without `agent_id` asks for. */
export const DEFAULT_AGENT_ID = 'default'

/** What a caller submitted, as it is stored with its task: every resume is given the same (agent-protocol 6.1). */
export interface Submission {
  readonly taskId: string
  readonly agentId: string
  readonly input: string
  /** The `context` as it came, custom members with it. */
  readonly context: JsonObject
  readonly userId?: string
  readonly parentSessionId?: string
  /** Conversation of the task; its own id where it names none. */
  readonly sessionId: string
  readonly denyRules: readonly PermissionRule[]
  /** Name of the task's workspace; another one when the same id is submitted again. */
  readonly workspaceId: string
}

/** A submission and what its reader may see of it, fixed at the start (R11). */
export interface ParsedSubmission {
  readonly submission: Submission
  readonly detail: Detail
  readonly hasPayload: boolean
  readonly fingerprint: string
}

/** Reads the body of a submission. @throws AGT_ERR_TASK_*: what the caller has to change */
export function parseSubmission (body: unknown, requireInput: boolean): ParsedSubmission {
  if (!isObject(body)) throw new TaskError('invalid_body', 'the body is a JSON object')
  const taskId = readTaskId(body.task_id)
  const context = readContext(body.context)
  const agentId = readName('agent_id', body.agent_id)
  const userId = nameOr(context.user_id)
  const parentSessionId = nameOr(context.parent_session_id)
  const input = textOf(body.input)
  if (requireInput && input.trim() === '') throw new TaskError('input_required', 'input is required', { task_id: taskId })
  const submission: Submission = {
    taskId,
    agentId: agentId ?? DEFAULT_AGENT_ID,
    input,
    context,
    ...userId !== undefined && { userId },
    ...parentSessionId !== undefined && { parentSessionId },
    sessionId: readName('context.session_id', context.session_id) ?? taskId,
    denyRules: readDenyRules(context.deny_rules),
    workspaceId: randomUUID()
  }
  // Without a stream nobody reads what only streams show.
  const detail = context.stream === false ? 'status' : readDetail(context.detail) ?? 'status'
  return { submission, detail, hasPayload: context.payload !== false, fingerprint: fingerprintOf(submission) }
}

/** The attributes of a submission: a plain object's members that are not null. */
export function attributesOf (context: JsonObject): JsonObject {
  const { attributes } = context
  if (!isObject(attributes)) return {}
  return Object.fromEntries(Object.entries(attributes as JsonObject).filter(([, value]) => value !== null))
}

/** The same text for the same submission, in whatever order its members came (R15). */
function fingerprintOf ({ agentId, input, context }: Submission): string {
  return createHash('sha256').update(sorted([agentId, input, context])).digest('base64url')
}

function sorted (value: JsonValue): string {
  if (Array.isArray(value)) return `[${(value as readonly JsonValue[]).map(sorted).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${sorted(value[key] as JsonValue)}`).join()}}` // plain JSON
}

function readContext (value: unknown): JsonObject {
  // As in the reference: what is no object counts as none.
  if (!isObject(value)) return {}
  if (depthOf(value) > MAX_CONTEXT_DEPTH) throw new TaskError('invalid_context', `context is nested deeper than ${MAX_CONTEXT_DEPTH} levels`)
  const context = toJson(value) as JsonObject // of an object
  if (Buffer.byteLength(JSON.stringify(context)) > MAX_CONTEXT_BYTES) throw new TaskError('invalid_context', `context is larger than ${MAX_CONTEXT_BYTES} bytes`)
  return context
}

/** Level by level, and no further than is allowed: the body is foreign. */
function depthOf (value: object): number {
  let level: object[] = [value]
  let depth = 0
  while (level.length > 0 && depth <= MAX_CONTEXT_DEPTH) {
    depth++
    level = level.flatMap((item) => Object.values(item).filter((member): member is object => typeof member === 'object' && member !== null))
  }
  return depth
}

function readName (field: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  const name = nameOr(value)
  const isBlank = typeof value === 'string' && value.trim() === ''
  if (name === undefined && !isBlank) throw new TaskError('invalid_body', `${field} is a text of at most ${MAX_NAME} characters`)
  return name
}

/** A name as text; numbers are names too, as in the reference. */
function nameOr (value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text.trim() !== '' && text.length <= MAX_NAME ? text.toWellFormed() : undefined
}

function textOf (value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value.toWellFormed() : JSON.stringify(value)
}
