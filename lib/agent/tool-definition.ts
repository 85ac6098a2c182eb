import { type Static, Type } from '@sinclair/typebox'
import { JsonObject } from './json.ts'

/** A tool as a model sees it; `parameters` is the JSON Schema of its input object. */
export const ToolDefinition = Type.Object({
  name: Type.String({ minLength: 1 }),
  description: Type.Optional(Type.String()),
  parameters: Type.Optional(JsonObject),
  strict: Type.Optional(Type.Boolean()),
  metadata: Type.Optional(JsonObject)
}, { additionalProperties: true })
/** @see {@link ToolDefinition} */
export type ToolDefinition = Static<typeof ToolDefinition>

/** Which tool a model may or must call; a hint. */
export const ToolChoice = Type.Union([
  Type.Literal('auto'), Type.Literal('none'), Type.Literal('required'), Type.Object({ name: Type.String() })
])
/** @see {@link ToolChoice} */
export type ToolChoice = Static<typeof ToolChoice>

/** What a request's tools do to the agent's own (ag-ui 19.1). */
export type ToolMergeMode = 'EXTERNAL_ONLY' | 'AGENT_ONLY' | 'MERGE_EXTERNAL_PRIORITY' | 'MERGE_AGENT_PRIORITY'

/** {@link ToolMergeMode} or one of its older spellings, each meaning the same as the mode beside it. */
export type ToolMergeModeName = ToolMergeMode |
  'FRONTEND_ONLY' | 'MERGE_FRONTEND_PRIORITY' | 'client-only' | 'agent-only' | 'merge'

/** Schema of {@link ToolMergeModeName}. */
export const ToolMergeModeName = Type.Unsafe<ToolMergeModeName>(Type.Union([
  Type.Literal('EXTERNAL_ONLY'), Type.Literal('AGENT_ONLY'), Type.Literal('MERGE_EXTERNAL_PRIORITY'),
  Type.Literal('MERGE_AGENT_PRIORITY'), Type.Literal('FRONTEND_ONLY'), Type.Literal('MERGE_FRONTEND_PRIORITY'),
  Type.Literal('client-only'), Type.Literal('agent-only'), Type.Literal('merge')
]))
