import {
  type AgentEventInit, type ConfirmDecision, type Decision, deniedByUser, isObject, type JsonObject, type ResultDecision, type ToolResultBlock, type ToolUseBlock
} from '../../agent/index.ts'
import type { ProviderApproval } from './model-prompt.ts'
import { metadataKeys } from './provider-metadata.ts'

type CallDecision = (ConfirmDecision | ResultDecision) & { readonly toolCall: ToolUseBlock }

/** A call to run, and what is known about it already. */
export interface Job {
  readonly call: ToolUseBlock
  readonly decision?: ConfirmDecision
  /** Answers to what a child of the call waited for. */
  readonly resume?: readonly Decision[]
}

/**
 * What was decided while a run was paused, by what it means here. Only decisions that come with the server's stored call count: what
 * a client says it was asked is never run.
 */
export class Answers {
  /** Calls to run, or to end as denied. */
  readonly jobs: Job[] = []
  /** Results that came from outside. */
  readonly results: ToolResultBlock[] = []
  /** Answers to a provider that asks before it runs a call itself. */
  readonly approvals = new Map<string, ProviderApproval>()
  /** The stored calls, with edited arguments. */
  readonly calls = new Map<string, ToolUseBlock>()

  constructor (decisions: readonly Decision[]) {
    const children = new Map<string, { readonly call: ToolUseBlock, readonly resume: Decision[] }>()
    for (const decision of decisions) {
      if (!hasCall(decision)) continue
      const parent = parentOf(decision.toolCall)
      if (parent === undefined) {
        this.#add(decision)
      } else {
        const child = children.get(parent.call.id) ?? { call: parent.call, resume: [] }
        children.set(parent.call.id, child)
        child.resume.push({ ...decision, toolCall: parent.answered })
      }
    }
    for (const { call, resume } of children.values()) {
      this.calls.set(call.id, call)
      this.jobs.push({ call, resume })
    }
  }

  /** Nothing was decided: the run is no continuation. */
  get isEmpty (): boolean {
    return this.calls.size === 0
  }

  #add (decision: CallDecision): void {
    const call = decision.toolCall
    this.calls.set(call.id, call)
    if (decision.kind === 'result') {
      this.results.push({ type: 'tool_result', id: call.id, name: call.name, output: decision.output, state: decision.state })
      return
    }
    const approvalId = call.metadata?.[metadataKeys.approval]
    if (typeof approvalId !== 'string') this.jobs.push({ call, decision })
    else this.#answerProvider(call, approvalId, decision)
  }

  #answerProvider (call: ToolUseBlock, approvalId: string, { approved, editedArgs, reason }: ConfirmDecision): void {
    if (approved && editedArgs === undefined) {
      this.approvals.set(call.id, { approvalId, approved })
      return
    }
    // The provider runs what it asked about and nothing else: it is told to ask again.
    const why = editedArgs === undefined ? reason ?? deniedByUser : `Approved only with these arguments, call it again with them: ${JSON.stringify(editedArgs)}`
    this.approvals.set(call.id, { approvalId, approved: false, reason: why })
    this.results.push({ type: 'tool_result', id: call.id, name: call.name, output: [{ type: 'text', text: why }], state: 'denied' })
  }
}

/** Marks what a child of a call waits for, so that its answer finds the way back. */
export function withParent (event: AgentEventInit, { id, name, input }: ToolUseBlock): AgentEventInit {
  if (event.source !== undefined || (event.type !== 'REQUIRE_USER_CONFIRM' && event.type !== 'REQUIRE_EXTERNAL_EXECUTION')) return event
  const toolCalls = event.toolCalls.map((call): ToolUseBlock => {
    if (call.id === id) return call
    const inner = call.metadata?.[metadataKeys.parent]
    return { ...call, metadata: { ...call.metadata, [metadataKeys.parent]: { id, name, input, ...inner !== undefined && { inner } } } }
  })
  return { ...event, toolCalls }
}

function parentOf (answered: ToolUseBlock): { readonly call: ToolUseBlock, readonly answered: ToolUseBlock } | undefined {
  const { [metadataKeys.parent]: parent, ...metadata } = answered.metadata ?? {}
  if (!isObject(parent)) return undefined
  // Written by withParent(), and kept by the server.
  const { id, name, input, inner } = parent as { id: string, name: string, input: JsonObject, inner?: JsonObject }
  return {
    call: { type: 'tool_use', id, name, input },
    answered: { ...answered, metadata: { ...metadata, ...inner !== undefined && { [metadataKeys.parent]: inner } } }
  }
}

function hasCall (decision: Decision): decision is CallDecision {
  return decision.kind !== 'input' && decision.toolCall !== undefined
}
