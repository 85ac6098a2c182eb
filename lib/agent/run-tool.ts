import { type ContentBlock, type ToolResultState, type ToolUseBlock } from './blocks.ts'
import type { RuntimeContext } from './context.ts'
import { parseArguments, isBlock } from './decode-message.ts'
import type { ConfirmDecision, Decision } from './decision.ts'
import { AgentError } from './errors.ts'
import type { AgentEventInit } from './events.ts'
import { type JsonObject, toJson } from './json.ts'
import type { Pending } from './pending.ts'
import { deniedByRules } from './permissions.ts'
import { deniedByUser } from './resolve-decisions.ts'
import { type Tool, type ToolContext, type ToolOutput, ToolSuspended } from './tool.ts'
import { validateJson } from './validate-json.ts'

/** A call to run. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input?: JsonObject
  /** Raw arguments, parsed when `input` is absent. */
  readonly content?: string
  readonly metadata?: JsonObject
}

/** Options of {@link runTool}. */
export interface RunToolOptions {
  /** Step that the events belong to. @default the open one */
  readonly replyId?: string
  /** Tell TOOL_CALL_START, DELTA and END first; not when the call was streamed already. @default false */
  readonly announce?: boolean
  /** The human's answer when the call was asked about in an earlier execution. */
  readonly decision?: ConfirmDecision
  /** Answers to what the call itself was suspended for. */
  readonly resume?: readonly Decision[]
}

/** What became of a call. */
export type ToolOutcome =
  | { readonly kind: 'done', readonly state: ToolResultState, readonly output: readonly ContentBlock[], readonly call: ToolUseBlock }
  | { readonly kind: 'pending', readonly pending: readonly Pending[], readonly call: ToolUseBlock }

/**
 * Runs one tool call and yields its events, from the result's start to its end; returns what became of it.
 *
 * In this order: a decision is applied, the deny rules are asked (with the edited arguments), the input is checked
 * against the schema, approval is asked for, the tool runs. A refusal, a wrong input and a tool that throws are results
 * for the model, not failures of the run; only an abort is thrown on, after the result was ended as `interrupted`.
 */
export async function * runTool (
  tool: Tool | undefined, call: ToolCall, runtime: RuntimeContext, options: RunToolOptions = {}
): AsyncGenerator<AgentEventInit, ToolOutcome, undefined> {
  const run = new ToolRun(call, options)
  if (options.announce === true) yield * run.announce()
  const { decision } = options
  if (decision !== undefined) {
    if (!decision.approved) return yield * run.finish('denied', decision.reason ?? deniedByUser)
    run.approve(decision)
  }
  if (tool === undefined) return yield * run.finish('error', `There is no tool named ${call.name}.`)
  const { input } = run.block
  if (runtime.permissions.check({ name: call.name, input }).behavior === 'deny') return yield * run.finish('denied', deniedByRules)
  const error = tool.parameters === undefined ? undefined : validateJson(tool.parameters, input)
  if (error !== undefined) return yield * run.finish('error', `Invalid arguments at ${error}`)
  const context: ToolContext = { toolCallId: call.id, signal: runtime.signal, runtime, resume: options.resume ?? [] }
  if (decision === undefined && context.resume.length === 0 && await isApprovalNeeded(tool, input, context)) return yield * run.ask('confirm')
  if (tool.execute === undefined) return yield * run.ask('external')
  return yield * run.execute(tool.execute, context)
}

async function isApprovalNeeded ({ needsApproval = false }: Tool, input: JsonObject, context: ToolContext): Promise<boolean> {
  return typeof needsApproval === 'boolean' ? needsApproval : await needsApproval(input, context)
}

class ToolRun {
  readonly #step: { replyId?: string }
  readonly #names: { replyId?: string, toolCallId: string, toolCallName: string }
  readonly #output: ContentBlock[] = []
  readonly #content: string
  block: ToolUseBlock

  constructor (call: ToolCall, { replyId }: RunToolOptions) {
    this.#step = replyId === undefined ? {} : { replyId }
    this.#names = { ...this.#step, toolCallId: call.id, toolCallName: call.name }
    const input = call.input ?? parseArguments(call.content ?? '')
    this.#content = call.content ?? JSON.stringify(input)
    this.block = {
      type: 'tool_use', id: call.id, name: call.name, input, content: this.#content, metadata: call.metadata ?? {}, state: 'pending'
    }
  }

  /** Takes the arguments that the human approved, edited ones included. */
  approve ({ toolCall }: ConfirmDecision): void {
    this.block = { ...this.block, ...toolCall, state: 'allowed' }
  }

  * announce (): Generator<AgentEventInit, void, undefined> {
    yield { type: 'TOOL_CALL_START', ...this.#names }
    yield { type: 'TOOL_CALL_DELTA', ...this.#names, delta: this.#content }
    yield { type: 'TOOL_CALL_END', ...this.#names }
  }

  * finish (state: ToolResultState, text: string): Generator<AgentEventInit, ToolOutcome, undefined> {
    yield { type: 'TOOL_RESULT_START', ...this.#names }
    yield * this.#tell([{ type: 'text', text }])
    return yield * this.#end(state)
  }

  * ask (kind: 'confirm' | 'external'): Generator<AgentEventInit, ToolOutcome, undefined> {
    const toolCall: ToolUseBlock = { ...this.block, state: kind === 'confirm' ? 'asking' : 'pending' }
    yield { type: kind === 'confirm' ? 'REQUIRE_USER_CONFIRM' : 'REQUIRE_EXTERNAL_EXECUTION', ...this.#step, toolCalls: [toolCall] }
    return { kind: 'pending', pending: [{ kind, replyId: this.#step.replyId ?? '', toolCall }], call: toolCall }
  }

  async * execute (execute: NonNullable<Tool['execute']>, context: ToolContext): AsyncGenerator<AgentEventInit, ToolOutcome, undefined> {
    yield { type: 'TOOL_RESULT_START', ...this.#names }
    try {
      const running = execute(this.block.input, context)
      const output = isIterator(running) ? yield * this.#drain(running) : await running
      yield * this.#tell(blocksOf(output))
    } catch (error) {
      if (context.signal.aborted) {
        yield * this.#end('interrupted')
        throw error
      }
      if (error instanceof ToolSuspended) return yield * this.#suspend(error)
      yield * this.#tell([{ type: 'text', text: errorText(error) }])
      return yield * this.#end('error')
    }
    return yield * this.#end('success')
  }

  /** Passes on what a streaming tool yields; ends it when the run goes away. */
  async * #drain (iterator: AsyncIterator<unknown, ToolOutput, undefined>): AsyncGenerator<AgentEventInit, ToolOutput, undefined> {
    let isYielding = false
    try {
      for (;;) {
        const result = await iterator.next()
        if (result.done === true) return result.value
        isYielding = true
        if (typeof result.value === 'string') yield * this.#tell([{ type: 'text', text: result.value }])
        // The normaliser drops what is no event.
        else yield result.value as AgentEventInit
        isYielding = false
      }
    } finally {
      // Left at a yield: a tool that returned or threw has ended by itself.
      if (isYielding) await iterator.return?.()
    }
  }

  * #suspend ({ message, pending }: ToolSuspended): Generator<AgentEventInit, ToolOutcome, undefined> {
    yield * this.#tell([{ type: 'text', text: message }])
    yield { type: 'TOOL_RESULT_END', ...this.#names, state: 'running', metadata: { agentscope_suspended: true } }
    if (pending.length === 0) return yield * this.ask('external')
    for (const item of pending) yield requestOf(item)
    return { kind: 'pending', pending, call: this.block }
  }

  * #tell (blocks: readonly ContentBlock[]): Generator<AgentEventInit, void, undefined> {
    for (const block of blocks) {
      this.#output.push(block)
      if (block.type === 'text') yield { type: 'TOOL_RESULT_TEXT_DELTA', ...this.#names, delta: block.text }
      else yield { type: 'TOOL_RESULT_DATA_DELTA', ...this.#names, data: block }
    }
  }

  * #end (state: ToolResultState): Generator<AgentEventInit, ToolOutcome, undefined> {
    yield { type: 'TOOL_RESULT_END', ...this.#names, state }
    return { kind: 'done', state, output: this.#output, call: { ...this.block, state: 'finished' } }
  }
}

function requestOf (pending: Pending): AgentEventInit {
  const { replyId } = pending
  switch (pending.kind) {
    case 'confirm': return { type: 'REQUIRE_USER_CONFIRM', replyId, toolCalls: [pending.toolCall] }
    case 'external': return { type: 'REQUIRE_EXTERNAL_EXECUTION', replyId, toolCalls: [pending.toolCall] }
    case 'input': return { type: 'REQUIRE_INPUT', replyId, requests: [pending.request] }
  }
}

function blocksOf (output: unknown): ContentBlock[] {
  if (Array.isArray(output) && output.length > 0 && output.every(isBlock)) return output
  // A function, or nothing, has no JSON.
  const text = typeof output === 'string' ? output : JSON.stringify(toJson(output)) ?? ''
  return text === '' ? [] : [{ type: 'text', text }]
}

/** What the model is told of a tool's failure. It reaches clients too: an {@link AgentError} keeps to its public message. */
function errorText (error: unknown): string {
  if (error instanceof AgentError) return `Error: ${error.publicMessage}`
  return `Error: ${error instanceof Error ? error.message : String(error)}`
}

function isIterator (value: unknown): value is AsyncIterator<unknown, ToolOutput, undefined> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value && 'next' in value
}
