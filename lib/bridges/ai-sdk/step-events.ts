import type { FinishReason, TextStreamPart, ToolSet } from 'ai'
import { type AgentEventInit, isObject, type JsonObject, toJson, type ToolUseBlock } from '../../agent/index.ts'
import { metadataKeys, plain, withProviderMetadata } from './provider-metadata.ts'
import { toUsage } from './usage.ts'

type Part = TextStreamPart<ToolSet>
type PartOf<T extends Part['type']> = Extract<Part, { readonly type: T }>

/** What one model call says, as events; afterwards, what is to be done about it (agent-events 10.1). */
export class StepEvents {
  /** Calls that are ours to run, in the model's order. */
  readonly calls: ToolUseBlock[] = []
  /** Calls that cannot be run, unknown tools and arguments that are no JSON, with what the model is told. */
  readonly broken = new Map<string, { readonly name: string, readonly text: string }>()
  /** Calls that the provider runs once somebody approves. */
  readonly approvals: ToolUseBlock[] = []
  finishReason: FinishReason = 'other'
  readonly #replyId: string
  readonly #clientTools: ReadonlySet<string>
  /** Calls whose arguments stream, and whether any of them came. */
  readonly #streamed = new Map<string, boolean>()
  /** Names of calls that were begun and not made yet. */
  readonly #begun = new Map<string, string>()
  /** What a provider said last about an open thought. */
  readonly #thoughts = new Map<string, PartOf<'reasoning-start'>['providerMetadata']>()
  #files = 0

  constructor (replyId: string, clientTools: ReadonlySet<string>) {
    this.#replyId = replyId
    this.#clientTools = clientTools
  }

  * map (part: Part): Generator<AgentEventInit, void, undefined> {
    const replyId = this.#replyId
    switch (part.type) {
      case 'text-start': return yield { type: 'TEXT_BLOCK_START', replyId, blockId: part.id }
      case 'text-delta':
        if (part.text !== '') yield { type: 'TEXT_BLOCK_DELTA', replyId, blockId: part.id, delta: part.text }
        return
      case 'text-end': return yield { type: 'TEXT_BLOCK_END', replyId, blockId: part.id, ...withProviderMetadata(part.providerMetadata) }
      case 'reasoning-start': case 'reasoning-delta': case 'reasoning-end': return yield * this.#reasoning(part)
      case 'tool-input-start':
        this.#streamed.set(part.id, false)
        this.#begun.set(part.id, part.toolName)
        return yield this.#callStart(part.id, part.toolName)
      case 'tool-input-delta':
        this.#streamed.set(part.id, true)
        return yield { type: 'TOOL_CALL_DELTA', replyId, toolCallId: part.id, delta: part.delta }
      case 'tool-call': return yield * this.#call(part)
      case 'tool-result': return yield * this.#result(part)
      case 'tool-error': return yield * this.#error(part)
      case 'tool-approval-request':
        this.approvals.push({
          ...blockOf(part.toolCall), metadata: { ...metadataOf(part.toolCall), [metadataKeys.approval]: part.approvalId }, state: 'asking'
        })
        return
      case 'file': return yield * this.#file(part)
      case 'source': {
        const { type, ...citation } = part
        return yield { type: 'CUSTOM', name: 'citation', value: plain(citation) }
      }
      case 'finish-step': {
        this.finishReason = part.finishReason
        const usage = toUsage(part.usage)
        yield {
          type: 'MODEL_CALL_END', replyId, model: part.response.modelId, finishReason: part.finishReason, ...usage !== undefined && { usage }
        }
        // Clients have seen them begin: nobody is to wait for them. The model itself is told nothing of what it has not said.
        for (const [id, name] of this.#begun) yield * this.#answer(id, name, 'The call was not made: its arguments were begun and never finished.', 'error')
        break
      }
      // Said by other means (the step's own start and end), or of no meaning to anybody but the provider.
      case 'start': case 'start-step': case 'finish': case 'tool-input-end': case 'tool-output-denied': case 'abort': case 'error': case 'raw':
    }
  }

  * #reasoning (part: PartOf<'reasoning-start' | 'reasoning-delta' | 'reasoning-end'>): Generator<AgentEventInit, void, undefined> {
    const block = { replyId: this.#replyId, blockId: part.id }
    const metadata = part.providerMetadata ?? this.#thoughts.get(part.id)
    this.#thoughts.set(part.id, metadata)
    switch (part.type) {
      case 'reasoning-start': return yield { type: 'THINKING_BLOCK_START', ...block }
      case 'reasoning-delta':
        if (part.text !== '') yield { type: 'THINKING_BLOCK_DELTA', ...block, delta: part.text }
        return
      case 'reasoning-end': return yield { type: 'THINKING_BLOCK_END', ...block, ...withProviderMetadata(metadata) }
    }
  }

  #callStart (toolCallId: string, toolCallName: string): AgentEventInit {
    const executor = this.#clientTools.has(toolCallName) ? 'client' : 'agent'
    return { type: 'TOOL_CALL_START', replyId: this.#replyId, toolCallId, toolCallName, executor }
  }

  * #call (part: PartOf<'tool-call'>): Generator<AgentEventInit, void, undefined> {
    const { toolCallId, toolName } = part
    const names = { replyId: this.#replyId, toolCallId, toolCallName: toolName }
    const streamed = this.#streamed.get(toolCallId)
    this.#begun.delete(toolCallId)
    const block = blockOf(part)
    if (streamed === undefined) yield this.#callStart(toolCallId, toolName)
    if (streamed !== true) yield { type: 'TOOL_CALL_DELTA', ...names, delta: argumentsText(part.input) }
    const metadata = metadataOf(part)
    yield { type: 'TOOL_CALL_END', ...names, ...Object.keys(metadata).length > 0 && { metadata } }
    if (part.invalid !== true && part.providerExecuted !== true) this.calls.push(block)
  }

  /** What the provider's own tools give. */
  * #result (part: PartOf<'tool-result'>): Generator<AgentEventInit, void, undefined> {
    const { toolCallId, toolName } = part
    const output = toJson(part.output)
    yield * this.#answer(toolCallId, toolName, typeof output === 'string' ? output : JSON.stringify(output), 'success')
  }

  * #error (part: PartOf<'tool-error'>): Generator<AgentEventInit, void, undefined> {
    const text = typeof part.error === 'string' ? part.error : JSON.stringify(part.error)
    if (part.providerExecuted !== true) this.broken.set(part.toolCallId, { name: part.toolName, text })
    yield * this.#answer(part.toolCallId, part.toolName, text, 'error')
  }

  * #answer (toolCallId: string, toolCallName: string, delta: string, state: 'success' | 'error'): Generator<AgentEventInit, void, undefined> {
    const names = { replyId: this.#replyId, toolCallId, toolCallName }
    yield { type: 'TOOL_RESULT_START', ...names }
    yield { type: 'TOOL_RESULT_TEXT_DELTA', ...names, delta }
    yield { type: 'TOOL_RESULT_END', ...names, state }
  }

  * #file ({ file }: PartOf<'file'>): Generator<AgentEventInit, void, undefined> {
    const block = { replyId: this.#replyId, blockId: `file-${++this.#files}` }
    yield { type: 'DATA_BLOCK_START', ...block, mediaType: file.mediaType }
    yield { type: 'DATA_BLOCK_DELTA', ...block, delta: file.base64 }
    yield { type: 'DATA_BLOCK_END', ...block }
  }
}

type CallPart = Pick<PartOf<'tool-call'>, 'toolCallId' | 'toolName' | 'input' | 'providerExecuted' | 'providerMetadata'>

function blockOf (part: CallPart): ToolUseBlock {
  const input = toJson(part.input)
  return {
    type: 'tool_use',
    id: part.toolCallId,
    name: part.toolName,
    // An object stays one; a model that writes anything else gave no arguments.
    input: isObject(input) ? input as JsonObject : {},
    content: argumentsText(part.input),
    metadata: metadataOf(part)
  }
}

function metadataOf ({ providerExecuted, providerMetadata }: CallPart): JsonObject {
  return { ...withProviderMetadata(providerMetadata).metadata, ...providerExecuted === true && { [metadataKeys.executed]: true } }
}

/** Arguments that are no JSON come as the text that the model wrote. */
function argumentsText (input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(toJson(input) ?? {})
}
