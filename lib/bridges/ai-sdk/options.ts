import type { LanguageModel, streamText, ToolSet } from 'ai'
import type { Tool } from '../../agent/index.ts'
import { InvalidOptionError, readInteger } from '../../options.ts'

/** A language model object of `ai` 6, as its providers make them. For a model id of the gateway: `gateway('openai/gpt-5')`. */
export type AiSdkModel = Extract<LanguageModel, { readonly specificationVersion: 'v3' }>

type StreamTextOptions = Parameters<typeof streamText<ToolSet>>[0]

/** What is handed to `streamText` as it is, at every step. */
export type AiSdkSettings = Pick<StreamTextOptions,
  'maxOutputTokens' | 'temperature' | 'topP' | 'topK' | 'presencePenalty' | 'frequencyPenalty' | 'stopSequences' | 'seed' |
  'maxRetries' | 'headers' | 'providerOptions' | 'experimental_telemetry'>

/** Options of {@link aiSdkAgent}. */
export interface AiSdkAgentOptions {
  readonly model: AiSdkModel
  /** Name shown to clients. @default 'assistant' */
  readonly name?: string
  /** One sentence for clients and parent agents. */
  readonly description?: string
  /** Instructions of the system. System messages of the conversation follow it. */
  readonly system?: string
  /**
   * The agent's own tools: a `ToolSet` of `ai`, or tools made by `defineTool`. Their `needsApproval` is honoured; one
   * without `execute` ends the run until somebody outside gives its result. @default none
   */
  readonly tools?: ToolSet | readonly Tool[]
  /** Model calls a run may make; then it ends with `MAX_ITERATIONS`. Minimum 1. @default 20 */
  readonly maxSteps?: number
  /** Media types of message content that the model takes. @default ['image/*'] */
  readonly inputMedia?: readonly string[]
  /** Handed to `streamText`; what a request asks for (`AgentInput.options`) is laid over it. @default none */
  readonly settings?: AiSdkSettings
}

/** {@link AiSdkAgentOptions} with all defaults. */
export interface ResolvedOptions {
  readonly model: AiSdkModel
  readonly name: string
  readonly description: string | undefined
  readonly system: string | undefined
  readonly tools: ToolSet | readonly Tool[]
  readonly maxSteps: number
  readonly inputMedia: readonly string[]
  readonly settings: AiSdkSettings
}

/** @throws InvalidOptionError AGT_ERR_OPTION_INVALID for a model that is no model of `ai` 6, or steps below 1. */
export function resolveOptions (options: AiSdkAgentOptions): ResolvedOptions {
  const { model } = options
  // JavaScript callers hand over ids and models of other majors, which only fail at the first request.
  if (typeof model !== 'object' || model === null || model.specificationVersion !== 'v3') {
    throw new InvalidOptionError('model', typeof model === 'string' ? JSON.stringify(model) : typeof model, 'it is a language model object of ai 6; for an id, gateway(id) makes one')
  }
  return {
    model,
    name: options.name ?? 'assistant',
    description: options.description,
    system: options.system,
    tools: options.tools ?? [],
    maxSteps: readInteger('maxSteps', options.maxSteps, { default: 20, min: 1 }),
    inputMedia: options.inputMedia ?? ['image/*'],
    settings: options.settings ?? {}
  }
}
