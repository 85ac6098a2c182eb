import {
  type AgentEventInit, type Decision, deniedByUser, isObject, type JsonObject, type Pending, type ToolUseBlock
} from '../../../lib/agent/index.ts'

/** Where a pause comes from: what its answer is brought back by, also in another process. */
export interface PauseOrigin {
  readonly taskId: string
  /** Sequence behind which the task goes on. */
  readonly seq: number
}

/** Member of a call's metadata that holds its {@link PauseOrigin}: the server that asks keeps the call, and with it the way back. */
const ORIGIN = 'agentprotocol.task'

/** What an input request is called to whoever answers it: its own id behind where it comes from, because answers bring nothing else back. */
const REQUEST_ID = /^([^:]+):(\d{1,15}):(.+)$/s

/** The requests of a paused task as events of the agent that stands for it. */
export function requestsOf (pending: readonly Pending[], origin: PauseOrigin): AgentEventInit[] {
  return pending.map((item) => requestOf(item, origin))
}

/** Answers that belong to one pause. */
export interface RelayedAnswers {
  readonly origin: PauseOrigin
  /** With the ids of the task. */
  readonly decisions: readonly Decision[]
}

/** Finds the task that answers belong to; undefined when they name none, or several. */
export function relayedAnswers (decisions: readonly Decision[]): RelayedAnswers | undefined {
  let origin: PauseOrigin | undefined
  const relayed: Decision[] = []
  for (const decision of decisions) {
    const found = originOf(decision)
    if (found === undefined || (origin !== undefined && origin.taskId !== found.taskId)) return undefined
    if (origin === undefined || found.seq < origin.seq) origin = { taskId: found.taskId, seq: found.seq }
    relayed.push(decision.kind === 'input' ? { ...decision, requestId: found.id } : decision)
  }
  return origin === undefined ? undefined : { origin, decisions: relayed }
}

/** The body of a resume request (agent-protocol 7.2). */
export function resumeBody (decisions: readonly Decision[]): JsonObject {
  const body = { decisions: [] as JsonObject[], results: [] as JsonObject[], inputs: [] as JsonObject[] }
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'confirm': {
        const { toolCallId, approved, reason, editedArgs, rules } = decision
        body.decisions.push({
          toolCallId,
          approved,
          ...reason !== undefined && { reason },
          ...approved && editedArgs !== undefined && { editedArgs },
          ...rules !== undefined && { rules }
        } as JsonObject)
        break
      }
      case 'result': {
        const { toolCallId, output, state, metadata } = decision
        body.results.push({ toolCallId, output, state, ...metadata !== undefined && { metadata } } as unknown as JsonObject) // blocks are JSON
        break
      }
      case 'input':
        body.inputs.push({
          requestId: decision.requestId, status: decision.status, ...decision.payload !== undefined && { payload: decision.payload }
        } as JsonObject)
    }
  }
  // A service that knows confirmations alone is asked about nothing else.
  const { results, inputs, ...plain } = body
  return { ...plain, ...results.length > 0 && { results }, ...inputs.length > 0 && { inputs } }
}

/** A no to everything. */
export function denials (pending: readonly Pending[], reason: string | undefined): Decision[] {
  return pending.map((item) => denialOf(item, reason))
}

/** The id that a decision answers. */
export function decisionId (decision: Decision): string {
  return decision.kind === 'input' ? decision.requestId : decision.toolCallId
}

function requestOf (item: Pending, origin: PauseOrigin): AgentEventInit {
  const step = item.replyId === '' ? {} : { replyId: item.replyId }
  switch (item.kind) {
    case 'confirm': return { type: 'REQUIRE_USER_CONFIRM', ...step, toolCalls: [withOrigin(item.toolCall, origin)] }
    case 'external': return { type: 'REQUIRE_EXTERNAL_EXECUTION', ...step, toolCalls: [withOrigin(item.toolCall, origin)] }
    case 'input': return { type: 'REQUIRE_INPUT', ...step, requests: [{ ...item.request, id: `${origin.taskId}:${origin.seq}:${item.request.id}` }] }
  }
}

function denialOf (item: Pending, reason: string | undefined): Decision {
  switch (item.kind) {
    case 'confirm': return { kind: 'confirm', toolCallId: item.toolCall.id, approved: false, ...reason !== undefined && { reason } }
    case 'external': return { kind: 'result', toolCallId: item.toolCall.id, output: [{ type: 'text', text: reason ?? deniedByUser }], state: 'denied' }
    case 'input': return { kind: 'input', requestId: item.request.id, status: 'cancelled' }
  }
}

function withOrigin (call: ToolUseBlock, { taskId, seq }: PauseOrigin): ToolUseBlock {
  return { ...call, metadata: { ...call.metadata, [ORIGIN]: { taskId, seq } } }
}

function originOf (decision: Decision): PauseOrigin & { readonly id: string } | undefined {
  if (decision.kind === 'input') {
    const [, taskId, seq, id] = REQUEST_ID.exec(decision.requestId) ?? []
    return taskId === undefined || id === undefined ? undefined : { taskId, seq: Number(seq), id }
  }
  const origin = decision.toolCall?.metadata?.[ORIGIN]
  if (!isObject(origin) || typeof origin.taskId !== 'string' || !Number.isSafeInteger(origin.seq)) return undefined
  return { taskId: origin.taskId, seq: origin.seq as number, id: decision.toolCallId } // seen to be a whole number
}
