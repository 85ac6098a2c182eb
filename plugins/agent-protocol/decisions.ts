import { createPermissions, type Decision, deniedByRules, isObject, type Pending, type PermissionRule, resolveDecisions } from '../../lib/agent/index.ts'
import { TaskError } from './errors.ts'

/** Characters of a denial's reason. */
const MAX_REASON = 2_000

/** The answers of one resume, as the body named them. */
export interface Answers {
  readonly items: readonly Record<string, unknown>[]
  /** The pause that they are meant for. */
  readonly confirmId: string | undefined
}

/** The answers, matched with what is pending. */
export interface MatchedAnswers {
  readonly decisions: readonly Decision[]
  readonly approved: readonly string[]
  /** Refused by the body, by its silence, or by a deny rule. */
  readonly denied: readonly string[]
  readonly unknown: readonly string[]
}

/** Reads the body of a resume. @throws AGT_ERR_TASK_INVALID_BODY, AGT_ERR_TASK_INVALID_DECISIONS, AGT_ERR_TASK_INVALID_DECISION */
export function parseAnswers (body: unknown): Answers {
  if (!isObject(body)) throw new TaskError('invalid_body', 'the body is a JSON object')
  const results = body.results ?? body.tool_results
  const { decisions, inputs } = body
  if (decisions === undefined && results === undefined && inputs === undefined) throw invalidList('decisions')
  const items = [
    ...listOf('decisions', decisions).map(readConfirm),
    ...listOf('results', results).map(readResult),
    ...listOf('inputs', inputs).map(readInput)
  ]
  return { items, confirmId: typeof body.confirm_id === 'string' ? body.confirm_id : undefined }
}

/**
 * Matches answers with what is pending: the last of two counts, what is not named is denied, and a list that names nothing of it is
 * refused, because a typo must not deny silently (agent-protocol 7.2). Edited arguments are held against the deny rules again.
 * @throws AGT_ERR_TASK_NO_MATCHING_DECISION, AGT_ERR_TASK_MISSING_DECISIONS, AGT_ERR_TASK_WRONG_KIND, AGT_ERR_TASK_INVALID_DECISION
 */
export function matchAnswers (
  pending: readonly Pending[], { items }: Answers, options: { readonly denyRules: readonly PermissionRule[], readonly requireAll: boolean, readonly acceptRules?: boolean }
): MatchedAnswers {
  const resolved = resolveDecisions(pending, items.map((item) => checked(item, options.denyRules, pending)), {
    onMissing: options.requireAll ? 'reject' : 'deny', onUnknown: 'ignore', onDuplicate: 'last', allowRules: options.acceptRules === true
  })
  const ids = new Set(pending.map(idOfPending))
  if (items.length > 0 && !items.some((item) => ids.has(idOfItem(item)))) {
    throw new TaskError('no_matching_decision', 'none of the answers is about something that is pending', { unknown_decisions: items.map(idOfItem), pending: [...ids] })
  }
  if (resolved.kind === 'rejected') {
    const missing = resolved.problems.filter(({ code }) => code === 'missing').map(({ id }) => id)
    const [first] = resolved.problems.filter(({ code }) => code !== 'missing')
    if (first === undefined) throw new TaskError('missing_decisions', `no decision for ${missing.join(', ')}`, { missing })
    throw new TaskError(first.code === 'wrong-kind' ? 'wrong_kind' : 'invalid_decision', first.message, { id: first.id })
  }
  const { decisions, unknown } = resolved
  const approved = decisions.filter(isApproval).map(idOf)
  return { decisions, approved, denied: decisions.filter((decision) => !isApproval(decision)).map(idOf), unknown: [...new Set(unknown)] }
}

/** All that is pending, refused. */
export function denyAll (pending: readonly Pending[]): readonly Decision[] {
  return matchAnswers(pending, { items: [], confirmId: undefined }, { denyRules: [], requireAll: false }).decisions
}

function readConfirm (item: unknown): Record<string, unknown> {
  if (!isObject(item)) throw invalid('a decision is an object')
  const toolCallId = readId(item, 'toolCallId', 'tool_call_id')
  const { approved, reason, rules } = item
  const editedArgs = item.editedArgs ?? item.edited_args
  if (typeof approved !== 'boolean') throw invalid(`approved of ${toolCallId} is true or false`)
  if (editedArgs !== undefined && editedArgs !== null && !isObject(editedArgs)) throw invalid(`editedArgs of ${toolCallId} is an object`)
  if (reason !== undefined && reason !== null && (typeof reason !== 'string' || reason.trim().length > MAX_REASON)) {
    throw invalid(`reason of ${toolCallId} is a text of at most ${MAX_REASON} characters`)
  }
  return {
    kind: 'confirm',
    toolCallId,
    approved,
    ...typeof reason === 'string' && { reason },
    ...isObject(editedArgs) && { editedArgs },
    ...Array.isArray(rules) && { rules }
  }
}

function readResult (item: unknown): Record<string, unknown> {
  if (!isObject(item)) throw invalid('a result is an object')
  const toolCallId = readId(item, 'toolCallId', 'tool_call_id')
  const { output, state, metadata } = item
  const isText = typeof output === 'string' || Array.isArray(output)
  return {
    kind: 'result',
    toolCallId,
    output: isText ? output : output === undefined || output === null ? '' : JSON.stringify(output),
    ...typeof state === 'string' && { state: state.toLowerCase() },
    ...metadata !== undefined && { metadata }
  }
}

function readInput (item: unknown): Record<string, unknown> {
  if (!isObject(item)) throw invalid('an input is an object')
  const requestId = readId(item, 'id', 'requestId', 'request_id')
  const { status, payload } = item
  const isCancelled = status === 'cancelled' || status === 'canceled'
  if (status !== undefined && status !== null && !isCancelled && status !== 'resolved') throw invalid(`status of ${requestId} is resolved or cancelled`)
  return { kind: 'input', requestId, status: isCancelled ? 'cancelled' : 'resolved', ...payload !== undefined && { payload } }
}

/** An approval whose edited arguments a deny rule forbids is a denial. */
function checked (item: Record<string, unknown>, denyRules: readonly PermissionRule[], pending: readonly Pending[]): Record<string, unknown> {
  const { approved, editedArgs } = item
  if (approved !== true || !isObject(editedArgs) || denyRules.length === 0) return item
  const call = pending.find((candidate) => idOfPending(candidate) === item.toolCallId)
  if (call === undefined || call.kind === 'input') return item
  // A body of JSON.
  const { behavior } = createPermissions(denyRules).check({ name: call.toolCall.name, input: editedArgs as typeof call.toolCall.input })
  return behavior === 'deny' ? { kind: 'confirm', toolCallId: item.toolCallId, approved: false, reason: deniedByRules } : item
}

function listOf (name: string, value: unknown): readonly unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw invalidList(name)
  return value
}

function readId (item: Record<string, unknown>, ...names: readonly string[]): string {
  const value = names.map((name) => item[name]).find((id) => id !== undefined && id !== null)
  const id = typeof value === 'number' ? String(value) : value
  if (typeof id !== 'string' || id === '') throw invalid(`${names[0] ?? 'id'} is required`)
  return id
}

function isApproval (decision: Decision): boolean {
  switch (decision.kind) {
    case 'confirm': return decision.approved
    case 'result': return decision.state === 'success' || decision.state === 'error'
    case 'input': return decision.status === 'resolved'
  }
}

function idOf (decision: Decision): string {
  return decision.kind === 'input' ? decision.requestId : decision.toolCallId
}

function idOfItem (item: Record<string, unknown>): string {
  return String(item.kind === 'input' ? item.requestId : item.toolCallId)
}

function idOfPending (pending: Pending): string {
  return pending.kind === 'input' ? pending.request.id : pending.toolCall.id
}

function invalid (message: string): TaskError {
  return new TaskError('invalid_decision', message)
}

function invalidList (name: string): TaskError {
  return new TaskError('invalid_decisions', `${name} is a list`)
}
