import { type Static, Type } from '@sinclair/typebox'
import { Decision } from './decision.ts'
import { JsonObject } from './json.ts'
import { Msg } from './message.ts'
import { ToolChoice, ToolDefinition, ToolMergeModeName } from './tool-definition.ts'

/** Structured output that the caller asks for. */
export const OutputRequest = Type.Union([
  Type.Object({ schema: JsonObject, name: Type.Optional(Type.String()), strict: Type.Optional(Type.Boolean()) }),
  Type.Object({ type: Type.Literal('json') })
])
/** @see {@link OutputRequest} */
export type OutputRequest = Static<typeof OutputRequest>

/** Hints to the model; an agent may ignore each. */
export const ModelOptions = Type.Object({
  temperature: Type.Optional(Type.Number()),
  topP: Type.Optional(Type.Number()),
  maxOutputTokens: Type.Optional(Type.Number()),
  stop: Type.Optional(Type.Array(Type.String())),
  seed: Type.Optional(Type.Number()),
  reasoningEffort: Type.Optional(Type.String()),
  extra: Type.Optional(JsonObject)
})
/** @see {@link ModelOptions} */
export type ModelOptions = Static<typeof ModelOptions>

/**
 * What one execution of an agent gets (agent-events 9.2). With `history: 'append'` the messages are only what is new and
 * `resume` is the only source of answers; with `'replace'` they are the whole conversation and `resume` a view of answers in it.
 */
export const AgentInput = Type.Object({
  messages: Type.Array(Msg),
  history: Type.Union([Type.Literal('append'), Type.Literal('replace')]),
  resume: Type.Optional(Type.Array(Decision)),
  tools: Type.Optional(Type.Object({
    mode: ToolMergeModeName, definitions: Type.Array(ToolDefinition), choice: Type.Optional(ToolChoice)
  })),
  output: Type.Optional(OutputRequest),
  state: Type.Optional(Type.Unknown()),
  context: Type.Optional(Type.Array(Type.Object({ description: Type.String(), value: Type.String() }))),
  options: Type.Optional(ModelOptions)
})
/** @see {@link AgentInput} */
export type AgentInput = Static<typeof AgentInput>
