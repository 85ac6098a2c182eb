import type { AssistantContent, ModelMessage, ToolContent, ToolResultPart } from 'ai'
import { type ContentBlock, type JsonObject, type Msg, textOf, type ToolResultBlock, type ToolUseBlock } from '../../agent/index.ts'
import { toContentPart } from './content-parts.ts'
import { metadataKeys, providerOptionsOf } from './provider-metadata.ts'
import { type ToolOutput, toToolOutput, unanswered } from './tool-output.ts'

type AssistantPart = Exclude<AssistantContent, string>[number]

/** A conversation as `streamText` takes it. */
export interface ModelPrompt {
  /** All system messages as one text, empty for none: many models take one alone, and only before everything else. */
  readonly system: string
  readonly messages: ModelMessage[]
}

/** What a run knows better than the conversation that it was given. */
export interface PromptAnswers {
  /** Results by the call's id, instead of those in the conversation. */
  readonly outputs: ReadonlyMap<string, ToolOutput>
  /** Calls as the server has stored them, edited arguments included, instead of the client's. Those the conversation lacks are added to its end. */
  readonly calls: ReadonlyMap<string, ToolUseBlock>
  /** Answers to a provider's requests for approval, by the call's id. */
  readonly approvals: ReadonlyMap<string, ProviderApproval>
}

/** Answer to a provider that asks before it runs a call itself. */
export interface ProviderApproval {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string | undefined
}

const noAnswers: PromptAnswers = { outputs: new Map(), calls: new Map(), approvals: new Map() }

/**
 * Turns a conversation into what a model is shown. Wherever a client's copy is broken the prompt still is one that providers take: each
 * call is followed by one result, whatever its place was; a call without any gets one that says so, results without a call
 * are left out. Addresses of media are passed on, never fetched.
 */
export function toModelPrompt (messages: readonly Msg[], answers: PromptAnswers = noAnswers): ModelPrompt {
  const prompt = new PromptBuilder(messages, answers)
  for (const message of messages) prompt.add(message)
  return prompt.finish()
}

/** Calls after the last word of the user that have no result yet. */
export function openCalls (messages: readonly Msg[]): ToolUseBlock[] {
  const last = messages.slice(messages.findLastIndex(({ role }) => role === 'USER') + 1).flatMap(({ content }) => content)
  const answered = new Set(last.flatMap((block) => isResult(block) ? [block.id] : []))
  return last.filter((block) => block.type === 'tool_use').filter(({ id }) => !answered.has(id))
}

/** A suspended call's placeholder is no result. */
function isResult (block: ContentBlock): block is ToolResultBlock {
  return block.type === 'tool_result' && block.state !== 'running'
}

class PromptBuilder {
  readonly #system: string[] = []
  readonly #messages: ModelMessage[] = []
  readonly #results = new Map<string, ToolResultBlock>()
  readonly #answers: PromptAnswers
  readonly #shown = new Set<string>()
  /** The assistant's turn so far. */
  #turn: AssistantPart[] = []
  #calls: ToolUseBlock[] = []

  constructor (messages: readonly Msg[], answers: PromptAnswers) {
    this.#answers = answers
    for (const block of messages.flatMap(({ content }) => content)) {
      // The first one counts: a second result of a call is a client's slip or its attempt to change the past.
      if (isResult(block) && !this.#results.has(block.id)) this.#results.set(block.id, block)
    }
  }

  add (message: Msg): void {
    switch (message.role) {
      case 'SYSTEM': {
        const content = textOf(message)
        if (content !== '') this.#system.push(content)
        return
      }
      case 'USER': return this.#addUser(message.content)
      case 'ASSISTANT': case 'TOOL':
        for (const block of message.content) this.#addBlock(block)
        // A message is a turn, unless it holds nothing but what was thought before the next one.
        if (this.#turn.some(({ type }) => type !== 'reasoning')) this.#endTurn()
    }
  }

  finish (): ModelPrompt {
    this.#endTurn()
    for (const call of this.#answers.calls.values()) {
      if (!this.#shown.has(call.id)) this.#addCall(call)
    }
    this.#endTurn()
    return { system: this.#system.join('\n\n'), messages: this.#messages }
  }

  #addUser (blocks: readonly ContentBlock[]): void {
    this.#endTurn()
    const content = blocks.flatMap((block) => {
      const part = block.type === 'hint' ? hintPart(block.hint) : toContentPart(block)
      return part === undefined ? [] : [part]
    })
    if (content.length > 0) this.#messages.push({ role: 'user', content })
  }

  #addBlock (block: ContentBlock): void {
    switch (block.type) {
      case 'thinking':
        this.#turn.push({ type: 'reasoning', text: block.thinking, ...providerOptionsOf(block.metadata) })
        return
      case 'tool_use': return this.#addCall(block)
      case 'tool_result': return this.#endTurn()
      case 'hint': return this.#addUser([block])
      case 'text': case 'image': case 'audio': case 'video': case 'data': {
        const part = toContentPart(block)
        // What a model made is a file of it, pictures too.
        if (part?.type === 'image') this.#turn.push({ type: 'file', data: part.image, mediaType: part.mediaType ?? 'image/*' })
        else if (part !== undefined) this.#turn.push(part)
      }
    }
  }

  #addCall (given: ToolUseBlock): void {
    if (this.#shown.has(given.id)) return
    const call = this.#answers.calls.get(given.id) ?? given
    const isExecuted = call.metadata?.[metadataKeys.executed] === true
    const approval = this.#answers.approvals.get(call.id)
    // A provider's own call that has no result is over: nobody but the provider could give it.
    if (isExecuted && approval === undefined && !this.#results.has(call.id)) return
    this.#shown.add(call.id)
    this.#takeReasoning(call)
    this.#turn.push({
      type: 'tool-call',
      toolCallId: call.id,
      toolName: call.name,
      input: call.input,
      ...isExecuted && { providerExecuted: true },
      ...providerOptionsOf(call.metadata)
    })
    if (approval !== undefined) this.#turn.push({ type: 'tool-approval-request', approvalId: approval.approvalId, toolCallId: call.id })
    else if (isExecuted) this.#turn.push(this.#resultOf(call))
    if (approval !== undefined || !isExecuted) this.#calls.push(call)
  }

  /** Signed reasoning that was stored with a call stands for what the client kept of it. */
  #takeReasoning ({ metadata }: ToolUseBlock): void {
    const stored = metadata?.[metadataKeys.reasoning]
    if (!Array.isArray(stored)) return
    // Written by the run that paused, and kept by the server.
    const reasoning = (stored as readonly (JsonObject & { readonly text: string })[]).map((part): AssistantPart =>
      ({ type: 'reasoning', text: part.text, ...providerOptionsOf(part) }))
    this.#turn = [...reasoning, ...this.#turn.filter(({ type }) => type !== 'reasoning')]
  }

  #endTurn (): void {
    const content = this.#turn
    const calls = this.#calls
    this.#turn = []
    this.#calls = []
    // What was only thought, and then cut off, is no turn.
    if (!content.some(({ type }) => type !== 'reasoning')) return
    this.#messages.push({ role: 'assistant', content })
    if (calls.length > 0) this.#messages.push({ role: 'tool', content: calls.map((call) => this.#answerOf(call)) })
  }

  #answerOf (call: ToolUseBlock): ToolContent[number] {
    const approval = this.#answers.approvals.get(call.id)
    if (approval === undefined) return this.#resultOf(call)
    const { reason, ...answer } = approval
    return { type: 'tool-approval-response', ...answer, ...reason !== undefined && { reason }, providerExecuted: true }
  }

  #resultOf ({ id, name }: ToolUseBlock): ToolResultPart {
    const result = this.#results.get(id)
    const output = this.#answers.outputs.get(id) ?? (result === undefined ? unanswered : toToolOutput(result.output, result.state))
    return { type: 'tool-result', toolCallId: id, toolName: name, output }
  }
}

function hintPart (text: string): { type: 'text', text: string } {
  return { type: 'text', text: `<hint>${text}</hint>` }
}
