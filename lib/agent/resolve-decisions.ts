import { Check } from '@sinclair/typebox/value'
import type { ToolUseBlock } from './blocks.ts'
import { decodeBlocks } from './decode-message.ts'
import type { ConfirmDecision, Decision, InputDecision, ResultDecision } from './decision.ts'
import { isObject, type JsonObject, toJson } from './json.ts'
import { type Pending, pendingId } from './pending.ts'
import { PermissionRule } from './permission-rule.ts'
import type { ToolDefinition } from './tool-definition.ts'
import { validateJson } from './validate-json.ts'

/** Text that the model sees when a human refuses without a reason; clients of the reference match it. */
export const deniedByUser = 'Permission denied by user'

/** Options of {@link resolveDecisions}. */
export interface ResolveDecisionsOptions {
  /** What becomes of requests without an answer: refuse all, deny them, or leave them open. @default 'reject' */
  readonly onMissing?: 'reject' | 'deny' | 'leave'
  /** Answers to nothing that is pending. @default 'reject' */
  readonly onUnknown?: 'reject' | 'ignore'
  /** Several answers to one request. @default 'reject' */
  readonly onDuplicate?: 'reject' | 'last'
  /** Tools whose parameters edited arguments must match. */
  readonly tools?: readonly ToolDefinition[]
  /** Decisions may bring rules to remember. @default false */
  readonly allowRules?: boolean
}

/** What is wrong with one decision. */
export interface DecisionProblem {
  readonly code: 'malformed' | 'unknown' | 'duplicate' | 'wrong-kind' | 'invalid-arguments' | 'missing'
  /** Tool call or request id; empty for a decision without one. */
  readonly id: string
  readonly message: string
}

/** Outcome of {@link resolveDecisions}: all or nothing. */
export type ResolvedDecisions =
  | {
    readonly kind: 'resolved'
    /** In the order of the pending requests, for `AgentInput.resume`. */
    readonly decisions: readonly Decision[]
    /** Requests that had no answer and were denied. */
    readonly denied: readonly string[]
    /** Requests that stay open. */
    readonly left: readonly Pending[]
    /** Answers that were ignored. */
    readonly unknown: readonly string[]
  }
  | { readonly kind: 'rejected', readonly problems: readonly DecisionProblem[] }

/**
 * Matches answers with what is pending (agent-events 9.7). Only `approved: true` approves. Edited arguments
 * replace the stored ones whole, keep the call's metadata, must match the tool's schema, and are ignored with a denial; that
 * they are an object is checked in any case. The call handed to the agent is the stored one, never the client's.
 */
export function resolveDecisions (pending: readonly Pending[], decisions: readonly unknown[], options: ResolveDecisionsOptions = {}): ResolvedDecisions {
  const problems: DecisionProblem[] = []
  const open = new Map(pending.map((item) => [pendingId(item), item]))
  const answers = new Map<string, Record<string, unknown>>()
  const unknown: string[] = []
  for (const decision of decisions) {
    const id = idOf(decision)
    if (id === undefined || !isObject(decision)) problems.push({ code: 'malformed', id: '', message: 'A decision needs a kind and the id that it answers.' })
    else if (!open.has(id)) unknown.push(id)
    else if (answers.has(id) && options.onDuplicate !== 'last') problems.push({ code: 'duplicate', id, message: `${id} is answered more than once.` })
    else answers.set(id, decision)
  }
  if (options.onUnknown !== 'ignore') problems.push(...unknown.map((id): DecisionProblem => ({ code: 'unknown', id, message: `${id} is not pending.` })))
  const resolved: Decision[] = []
  const denied: string[] = []
  const left: Pending[] = []
  for (const [id, item] of open) {
    const answer = answers.get(id)
    if (answer !== undefined) {
      const result = resolve(item, answer, options)
      if ('code' in result) problems.push(result)
      else resolved.push(result)
    } else if (options.onMissing === 'leave') {
      left.push(item)
    } else if (options.onMissing === 'deny') {
      denied.push(id)
      resolved.push(refusal(item))
    } else {
      problems.push({ code: 'missing', id, message: `${id} has no answer.` })
    }
  }
  return problems.length > 0 ? { kind: 'rejected', problems } : { kind: 'resolved', decisions: resolved, denied, left, unknown }
}

/**
 * The stored call with edited arguments laid over it: parsed and raw form change, metadata (provider signatures) stays.
 */
export function editCall (call: ToolUseBlock, editedArgs: JsonObject): ToolUseBlock {
  return { ...call, input: editedArgs, content: JSON.stringify(editedArgs) }
}

function idOf (decision: unknown): string | undefined {
  if (!isObject(decision)) return undefined
  const id = decision.kind === 'input' ? decision.requestId : decision.toolCallId
  return typeof id === 'string' && id !== '' ? id : undefined
}

function resolve (pending: Pending, answer: Record<string, unknown>, options: ResolveDecisionsOptions): Decision | DecisionProblem {
  switch (pending.kind) {
    case 'confirm': return answer.kind === 'confirm' ? confirm(pending.toolCall, answer, options) : wrongKind(pending)
    case 'external': return answer.kind === 'result' ? result(pending.toolCall, answer) : wrongKind(pending)
    case 'input': return answer.kind === 'input' ? input(pending.request.id, answer) : wrongKind(pending)
  }
}

function confirm (call: ToolUseBlock, answer: Record<string, unknown>, options: ResolveDecisionsOptions): ConfirmDecision | DecisionProblem {
  const { id } = call
  const editedArgs = plain(answer.editedArgs)
  if (answer.editedArgs !== undefined && !isObject(editedArgs)) {
    return { code: 'invalid-arguments', id, message: `The edited arguments of ${id} must be an object.` }
  }
  const approved = answer.approved === true
  const decision: ConfirmDecision = { kind: 'confirm', toolCallId: id, approved, toolCall: call }
  if (!approved) {
    const reason = typeof answer.reason === 'string' ? answer.reason.trim() : ''
    return reason === '' ? decision : { ...decision, reason }
  }
  const rules = plain(answer.rules)
  if (options.allowRules === true && Array.isArray(rules)) decision.rules = rules.filter((rule) => Check(PermissionRule, rule))
  if (!isObject(editedArgs)) return { ...decision, toolCall: { ...call, state: 'allowed' } }
  // Plain JSON, and an object.
  const edited = editedArgs as JsonObject
  const parameters = options.tools?.find(({ name }) => name === call.name)?.parameters
  const error = parameters === undefined ? undefined : validateJson(parameters, edited)
  if (error !== undefined) return { code: 'invalid-arguments', id, message: `The edited arguments of ${id} do not fit its schema: ${error}` }
  return { ...decision, editedArgs: edited, toolCall: { ...editCall(call, edited), state: 'allowed' } }
}

function result (call: ToolUseBlock, answer: Record<string, unknown>): ResultDecision {
  const output = plain(answer.output)
  const metadata = plain(answer.metadata)
  const { state } = answer
  return {
    kind: 'result',
    toolCallId: call.id,
    toolName: call.name,
    output: typeof output === 'string' ? [{ type: 'text', text: output }] : decodeBlocks(output),
    state: state === 'error' || state === 'interrupted' || state === 'denied' ? state : 'success',
    ...isObject(metadata) && { metadata: metadata as JsonObject },
    toolCall: call
  }
}

function input (requestId: string, answer: Record<string, unknown>): InputDecision {
  const payload = plain(answer.payload)
  const status = answer.status === 'resolved' ? 'resolved' : 'cancelled'
  return { kind: 'input', requestId, status, ...payload !== undefined && status === 'resolved' && { payload } }
}

/** What nobody answered, answered with no. */
function refusal (pending: Pending): Decision {
  switch (pending.kind) {
    case 'confirm': return { kind: 'confirm', toolCallId: pending.toolCall.id, approved: false, toolCall: pending.toolCall }
    case 'external': return {
      ...result(pending.toolCall, { output: 'The tool was not executed.' }), state: 'interrupted'
    }
    case 'input': return { kind: 'input', requestId: pending.request.id, status: 'cancelled' }
  }
}

function wrongKind (pending: Pending): DecisionProblem {
  const id = pendingId(pending)
  return { code: 'wrong-kind', id, message: `${id} waits for ${wanted[pending.kind]}.` }
}

const wanted = { confirm: 'a confirmation', external: 'a tool result', input: 'an input' } as const

/** Plain JSON; null when it cannot be, which no check takes for an object. */
function plain (value: unknown): unknown {
  try {
    return toJson(value)
  } catch {
    return null
  }
}
