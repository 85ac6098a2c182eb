import type { ModelMessage, ToolResultPart, ToolSet } from 'ai'
import {
  AgentError, type AgentEventInit, type AgentInput, type ContentBlock, mergeTools, type MergedTools, newId, type RuntimeContext, runTool, type Tool, type ToolOutcome, type ToolResultBlock,
  type ToolUseBlock
} from '../../agent/index.ts'
import { Answers, type Job, withParent } from './answers.ts'
import { merge } from './merge.ts'
import { callModel, type ModelReply, type ModelRequest } from './model-call.ts'
import { toModelError } from './model-error.ts'
import { openCalls, toModelPrompt } from './model-prompt.ts'
import type { ResolvedOptions } from './options.ts'
import { metadataKeys, plain } from './provider-metadata.ts'
import { requestSettings, toolChoiceOf } from './request-settings.ts'
import { StepEvents } from './step-events.ts'
import { type OwnTools } from './tools.ts'
import { type ToolOutput, toToolOutput } from './tool-output.ts'

/** What a model wants done. */
interface Turn {
  /** Calls that are run here. */
  readonly calls: readonly ToolUseBlock[]
  /** Results of calls that cannot be run. */
  readonly broken: readonly ToolResultPart[]
  /** The model is done, was cut off, or its provider waits for an approval. */
  readonly isOver: boolean
}

/** One execution of an agent: answers first, then model and tools in turn, until the model is done or somebody is waited for. */
export class AgentRun {
  readonly #options: ResolvedOptions
  readonly #own: OwnTools
  readonly #input: AgentInput
  readonly #context: RuntimeContext
  readonly #merged: MergedTools<Tool>
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #answers: Answers
  /** What the model is shown of each result. */
  readonly #outputs = new Map<string, ToolOutput>()
  readonly #callIds: Set<string>
  #system = ''
  #messages: ModelMessage[] = []
  /** The messages before the answer whose calls are run. */
  #history: ModelMessage[] = []

  constructor (options: ResolvedOptions, own: OwnTools, input: AgentInput, context: RuntimeContext) {
    this.#options = options
    this.#own = own
    this.#input = input
    this.#context = context
    this.#merged = mergeTools(input.tools?.mode, own.bind({ history: () => this.#history, outputs: this.#outputs }), input.tools?.definitions)
    this.#tools = new Map(this.#merged.tools.map((tool) => [tool.name, tool]))
    this.#answers = new Answers(input.resume ?? [])
    this.#callIds = new Set([
      ...this.#answers.calls.keys(), ...input.messages.flatMap(({ content }) => content.flatMap((block) => block.type === 'tool_use' ? [block.id] : []))
    ])
  }

  async * stream (): AsyncGenerator<AgentEventInit, void, undefined> {
    if (!(yield * this.#resume())) return
    this.#readMessages()
    const { maxSteps } = this.#options
    for (let step = 0; step < maxSteps; step++) {
      const turn = yield * this.#callModel(step)
      const results = yield * this.#run(turn.calls.map((call) => ({ call })))
      if (results === undefined || turn.isOver) return
      this.#messages = [...this.#messages, { role: 'tool', content: [...results, ...turn.broken] }]
    }
    yield { type: 'EXCEED_MAX_ITERS', replyId: newId(), maxIters: maxSteps, currentIter: maxSteps }
  }

  /** Does what was decided while the run was paused. False when somebody still has to be waited for. */
  async * #resume (): AsyncGenerator<AgentEventInit, boolean, undefined> {
    const answers = this.#answers
    if (answers.isEmpty) return true
    this.#readMessages()
    this.#history = this.#messages.slice(0, this.#messages.findLastIndex(({ role }) => role === 'user') + 1)
    const replyId = newId()
    for (const result of answers.results) {
      yield * tell(result, replyId)
      this.#outputs.set(result.id, toToolOutput(result.output, result.state))
    }
    // The page's own calls of the same answer may still be under way: they are waited for again, not given up.
    const left = openCalls(this.#input.messages).filter(({ id, name }) => !answers.calls.has(id) && this.#merged.clientTools.has(name))
    const results = yield * this.#run([...answers.jobs, ...left.map((call) => ({ call }))])
    for (const { toolCallId, output } of results ?? []) this.#outputs.set(toolCallId, output)
    return results !== undefined
  }

  #readMessages (): void {
    const { system } = this.#options
    const { calls, approvals } = this.#answers
    const prompt = toModelPrompt(this.#input.messages, { outputs: this.#outputs, calls, approvals })
    this.#system = [system, prompt.system].filter(Boolean).join('\n\n')
    this.#messages = prompt.messages
  }

  async * #callModel (step: number): AsyncGenerator<AgentEventInit, Turn, undefined> {
    if (this.#messages.length === 0) throw new AgentError({ code: 'no_messages', message: 'There is no message to answer.', statusCode: 400, expose: true })
    const replyId = newId()
    const events = new StepEvents(replyId, this.#merged.clientTools)
    yield { type: 'MODEL_CALL_START', replyId, model: this.#options.model.modelId }
    const replies = yield * this.#listen(this.#request(step), events)
    this.#history = this.#messages
    this.#messages = [...this.#messages, ...replies]

    const { calls, broken, finishReason } = events
    if (finishReason === 'error') throw toModelError(new Error('The model ended its answer with an error.'))
    // As the SDK has it: a model that was cut off may have been cut off in the middle of a call.
    const isWhole = finishReason === 'stop' || finishReason === 'tool-calls'
    if (!isWhole) {
      for (const call of calls) yield * tell(resultOf(call, `The call was not made: the model's answer ended early (${finishReason}).`), replyId)
    }
    const reasoning = signedReasoning(replies)
    const approvals = events.approvals.map((call) => withReasoning(call, reasoning))
    if (approvals.length > 0) yield { type: 'REQUIRE_USER_CONFIRM', replyId, toolCalls: approvals }
    return {
      calls: isWhole ? calls.map((call) => withReasoning(call, reasoning)) : [],
      broken: [...broken].map(([id, { name, text }]) => resultPart(id, name, { type: 'error-text', value: text })),
      isOver: !isWhole || approvals.length > 0 || calls.length + broken.size === 0
    }
  }

  #request (step: number): ModelRequest {
    const { model, settings } = this.#options
    const offered = this.#merged.tools.flatMap((definition) => {
      const tool = this.#own.offer(definition, this.#context.denyRules)
      return tool === undefined ? [] : [[definition.name, tool] as const]
    })
    const tools: ToolSet = Object.fromEntries(offered)
    // Wanted of the answer to the user, not of what the model says to a result: it could never stop.
    const isAnswer = step === 0 && this.#messages.at(-1)?.role === 'user'
    return {
      ...requestSettings(settings, this.#input.options),
      ...offered.length > 0 && { tools },
      ...isAnswer && toolChoiceOf(tools, this.#input.tools?.choice),
      ...this.#system !== '' && { system: this.#system },
      model,
      messages: this.#messages,
      callIds: this.#callIds,
      // Addresses come from clients: what the model's provider cannot read itself is not fetched from inside our network.
      experimental_download: async (assets) => assets.map(() => null)
    }
  }

  /** Tells what the model says; gives what it said, as the next request repeats it. */
  async * #listen (request: ModelRequest, events: StepEvents): AsyncGenerator<AgentEventInit, ModelReply[], undefined> {
    const { signal } = this.#context
    const parts = callModel(request, signal)
    try {
      for (;;) {
        const { done, value } = await parts.next()
        if (done === true) return value
        if (value.type === 'error') throw value.error
        yield * events.map(value)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw toModelError(error)
    } finally {
      await parts.return([])
    }
  }

  /** Runs calls side by side. Their results for the model; undefined when one of them waits for somebody. */
  async * #run (jobs: readonly Job[]): AsyncGenerator<AgentEventInit, ToolResultPart[] | undefined, undefined> {
    this.#context.signal.throwIfAborted()
    const replyId = newId()
    const outcomes = yield * merge(jobs.map((job) => this.#runJob(job, replyId)))
    const results = outcomes.flatMap((outcome) => {
      if (outcome.kind === 'pending') return []
      const { call: { id, name }, output, state } = outcome
      // What a tool of `ai` shows its model was stored while it ran.
      const shown = state === 'success' ? this.#outputs.get(id) : undefined
      return [resultPart(id, name, shown ?? toToolOutput(joined(output), state))]
    })
    return results.length === outcomes.length ? results : undefined
  }

  async * #runJob ({ call, decision, resume }: Job, replyId: string): AsyncGenerator<AgentEventInit, ToolOutcome, undefined> {
    const running = runTool(this.#tools.get(call.name), call, this.#context, {
      replyId, ...decision !== undefined && { decision }, ...resume !== undefined && { resume }
    })
    try {
      for (;;) {
        const { done, value } = await running.next()
        if (done === true) return value
        yield withParent(value, call)
      }
    } finally {
      await running.return(undefined as never) // Reached only where nobody reads what it returns.
    }
  }
}

function * tell ({ id, name, output, state }: ToolResultBlock, replyId: string): Generator<AgentEventInit, void, undefined> {
  const names = { replyId, toolCallId: id, ...name !== undefined && { toolCallName: name } }
  yield { type: 'TOOL_RESULT_START', ...names }
  for (const data of output) {
    if (data.type === 'text') yield { type: 'TOOL_RESULT_TEXT_DELTA', ...names, delta: data.text }
    else yield { type: 'TOOL_RESULT_DATA_DELTA', ...names, data }
  }
  yield { type: 'TOOL_RESULT_END', ...names, state }
}

function resultOf ({ id, name }: ToolUseBlock, text: string): ToolResultBlock {
  return { type: 'tool_result', id, name, output: [{ type: 'text', text }], state: 'interrupted' }
}

function resultPart (toolCallId: string, toolName: string, output: ToolOutput): ToolResultPart {
  return { type: 'tool-result', toolCallId, toolName, output }
}

/** Pieces of one text as one: a tool may say it word by word. */
function joined (blocks: readonly ContentBlock[]): ContentBlock[] {
  const result: ContentBlock[] = []
  for (const block of blocks) {
    const last = result.at(-1)
    if (block.type === 'text' && last?.type === 'text') result[result.length - 1] = { type: 'text', text: last.text + block.text }
    else result.push(block)
  }
  return result
}

/** Thoughts that the provider wants back unchanged. */
function signedReasoning (replies: readonly ModelReply[]): readonly { readonly text: string, readonly [metadataKeys.provider]: object }[] {
  // The SDK answers in parts; texts are only taken from callers.
  const parts = replies.flatMap(({ content }) => content as Exclude<ModelReply['content'], string>)
  return parts.flatMap((part) =>
    part.type === 'reasoning' && part.providerOptions !== undefined ? [{ text: part.text, [metadataKeys.provider]: part.providerOptions }] : [])
}

/** Stored with a call that may have to wait, as clients do not keep signatures. */
function withReasoning (call: ToolUseBlock, reasoning: readonly object[]): ToolUseBlock {
  return reasoning.length === 0 ? call : { ...call, metadata: { ...call.metadata, ...plain({ [metadataKeys.reasoning]: reasoning }) } }
}
