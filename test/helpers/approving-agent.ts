// An agent whose tools a test gives it: it calls what the newest words of the user name, and goes on from what was decided.
import {
  type Agent, type AgentEventInit, type AgentInput, isObject, type JsonObject, mergeTools, type ResultDecision, type RuntimeContext, runTool, type RunToolOptions, textOf, type Tool,
  type ToolCall
} from '../../lib/agent/index.ts'

/** An {@link Agent} with a record of what it was given. */
export interface Approving extends Agent {
  readonly inputs: AgentInput[]
  readonly contexts: RuntimeContext[]
}

/** How an {@link Approving} agent is made. */
export interface ApprovingOptions {
  /** Of every call, beside its arguments: provider signatures, a response schema. */
  readonly metadata?: JsonObject
  /** Tells the results that came from outside, as most agents do. @default true */
  readonly tellsResults?: boolean
}

interface Job extends Pick<RunToolOptions, 'decision'> { readonly call: ToolCall }

/**
 * Makes the agent. A user message is a line a call, `name {"json":"arguments"}`; the calls of message `m` are `m-1`, `m-2`, ... and its reply is
 * `reply-m`. The page's tools are left to the page.
 */
export function approving (tools: readonly Tool[], options: ApprovingOptions = {}): Approving {
  const inputs: AgentInput[] = []
  const contexts: RuntimeContext[] = []
  return {
    name: 'approving',
    capabilities: { resume: true, clientTools: true, denyRules: true },
    inputs,
    contexts,
    async * stream (input, context) {
      inputs.push(input)
      contexts.push(context)
      const merged = mergeTools(input.tools?.mode, tools, input.tools?.definitions)
      const known = new Map(merged.tools.map((tool) => [tool.name, tool as Tool]))
      const run = new ApprovingRun(known, context)
      const { resume = [] } = input
      if (resume.length > 0) {
        const replyId = `act-${context.runId}`
        if (options.tellsResults !== false) yield * run.tell(resume.filter((decision): decision is ResultDecision => decision.kind === 'result'), replyId)
        return yield * run.batch(resume.flatMap((decision) => decision.kind === 'confirm' && decision.toolCall !== undefined ? [{ call: decision.toolCall, decision }] : []), replyId, false)
      }
      const last = input.messages.at(-1)
      const replyId = `reply-${last?.id ?? context.runId}`
      const calls = last?.role === 'USER' ? callsIn(textOf(last), last.id, options.metadata) : []
      if (calls.length > 0) return yield * run.batch(calls.map((call) => ({ call })), replyId, true)
      yield { type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta: `Tools: ${[...known.keys()].join()}` }
    }
  }
}

class ApprovingRun {
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #context: RuntimeContext

  constructor (tools: ReadonlyMap<string, Tool>, context: RuntimeContext) {
    this.#tools = tools
    this.#context = context
  }

  * tell (results: readonly ResultDecision[], replyId: string): Generator<AgentEventInit, void, undefined> {
    for (const { toolCallId, output, state } of results) {
      yield { type: 'TOOL_RESULT_START', replyId, toolCallId }
      for (const block of output) if (block.type === 'text') yield { type: 'TOOL_RESULT_TEXT_DELTA', replyId, toolCallId, delta: block.text }
      yield { type: 'TOOL_RESULT_END', replyId, toolCallId, state }
    }
  }

  async * batch (jobs: readonly Job[], replyId: string, announce: boolean): AsyncGenerator<AgentEventInit, void, undefined> {
    let isWaiting = false
    for (const { call, ...options } of jobs) {
      const outcome = yield * runTool(this.#tools.get(call.name), call, this.#context, { replyId, announce, ...options })
      isWaiting ||= outcome.kind === 'pending'
    }
    if (!isWaiting) yield { type: 'TEXT_BLOCK_DELTA', replyId: `${replyId}-done`, blockId: 'text', delta: 'Done.' }
  }
}

function callsIn (text: string, id: string, metadata: JsonObject | undefined): ToolCall[] {
  return text.split('\n').flatMap((line, index) => {
    const [, name, json] = /^(\w+) (\{.*\})$/.exec(line) ?? []
    if (name === undefined || json === undefined) return []
    const input: unknown = JSON.parse(json)
    return isObject(input) ? [{ id: `${id}-${index + 1}`, name, input: input as JsonObject, content: json, ...metadata !== undefined && { metadata } }] : []
  })
}

/** A tool that notes what it was run with. */
export interface NotedTool extends Tool {
  readonly ran: JsonObject[]
}

/** Makes a tool that waits for approval, unless told otherwise, and answers `<name> ok`. */
export function noted (name: string, more: Partial<Tool> = {}): NotedTool {
  const ran: JsonObject[] = []
  return {
    name,
    needsApproval: true,
    ran,
    execute: async (input) => {
      ran.push(input)
      return `${name} ok`
    },
    ...more
  }
}

/** The answer to one interrupt. */
export function answer (interruptId: string, payload?: unknown, status: 'resolved' | 'cancelled' = 'resolved'): Record<string, unknown> {
  return { interruptId, status, ...payload !== undefined && { payload } }
}
