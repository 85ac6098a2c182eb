// An agent whose tools a test gives it: it calls what the newest words of the user name, and goes on from what was decided.
import {
  type Agent, type AgentEventInit, type AgentInput, type ConfirmDecision, isObject, type JsonObject, type ResultDecision, type RuntimeContext, runTool, textOf, type Tool,
  type ToolCall
} from '../../lib/agent/index.ts'

/** An {@link Agent} with a record of what it was given. */
export interface Approving extends Agent {
  readonly inputs: AgentInput[]
  readonly contexts: RuntimeContext[]
}

/** How an {@link Approving} agent is made. */
export interface ApprovingOptions {
  readonly capabilities?: Agent['capabilities']
  /** Beside the id: provider signatures, a schema of its own. */
  readonly metadata?: JsonObject
}

/**
 * Makes the agent. A user message is a line a call, `name {"json":"arguments"}`; ids are `<message id>-1`, `-2`, ... and the reply is
 * `reply-<message id>`. What its own tools are not is left to the page.
 */
export function approving (tools: readonly Tool[], options: ApprovingOptions = {}): Approving {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const inputs: AgentInput[] = []
  const contexts: RuntimeContext[] = []
  return {
    name: 'approving',
    capabilities: options.capabilities ?? { resume: true, clientTools: true, denyRules: true },
    inputs,
    contexts,
    async * stream (input, context) {
      inputs.push(input)
      contexts.push(context)
      const decisions = input.resume ?? []
      if (decisions.length > 0) return yield * goOn(byName, decisions, context)
      const question = input.messages.findLast(({ role }) => role === 'USER')
      const id = question?.id ?? 'nobody'
      const calls = callsIn(question === undefined ? '' : textOf(question), id, options.metadata)
      const replyId = `reply-${id}`
      if (calls.length === 0) return yield { type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta: `Heard ${input.messages.length} messages.` }
      yield * batch(byName, calls.map((call) => ({ call })), context, replyId, input, true)
    }
  }
}

async function * goOn (tools: ReadonlyMap<string, Tool>, decisions: NonNullable<AgentInput['resume']>, context: RuntimeContext): AsyncGenerator<AgentEventInit, void, undefined> {
  const jobs = decisions.flatMap((decision) => decision.kind === 'confirm' && decision.toolCall !== undefined ? [{ call: decision.toolCall, decision }] : [])
  const results = decisions.filter((decision): decision is ResultDecision => decision.kind === 'result')
  const replyId = `act-${context.runId}`
  for (const { toolCallId, output, state } of results) {
    yield { type: 'TOOL_RESULT_START', replyId, toolCallId }
    for (const block of output) if (block.type === 'text') yield { type: 'TOOL_RESULT_TEXT_DELTA', replyId, toolCallId, delta: block.text }
    yield { type: 'TOOL_RESULT_END', replyId, toolCallId, state }
  }
  yield * batch(tools, jobs, context, replyId, undefined, false)
}

async function * batch (
  tools: ReadonlyMap<string, Tool>, jobs: readonly { readonly call: ToolCall, readonly decision?: ConfirmDecision }[], context: RuntimeContext, replyId: string,
  input: AgentInput | undefined, announce: boolean
): AsyncGenerator<AgentEventInit, void, undefined> {
  const offered = new Map(input?.tools?.definitions.map((tool) => [tool.name, tool as Tool]))
  let waits = false
  for (const { call, decision } of jobs) {
    const outcome = yield * runTool(tools.get(call.name) ?? offered.get(call.name), call, context, { replyId, announce, ...decision !== undefined && { decision } })
    waits ||= outcome.kind === 'pending'
  }
  if (!waits) yield { type: 'TEXT_BLOCK_DELTA', replyId: `${replyId}-said`, blockId: 'text', delta: 'Done.' }
}

function callsIn (text: string, id: string, metadata: JsonObject | undefined): ToolCall[] {
  return text.split('\n').flatMap((line, index) => {
    const [, name, json] = /^(\w+) (\{.*\})$/.exec(line) ?? []
    if (name === undefined || json === undefined) return []
    const input: unknown = JSON.parse(json)
    return isObject(input) ? [{ id: `${id}-${index + 1}`, name, input: input as JsonObject, content: json, ...metadata !== undefined && { metadata } }] : []
  })
}
