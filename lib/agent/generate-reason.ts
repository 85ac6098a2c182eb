import { type Static, Type } from '@sinclair/typebox'

/** Why a reply ended (agent-events 1.2). */
export const GenerateReason = Type.Union([
  Type.Literal('MODEL_STOP'), Type.Literal('TOOL_CALLS'), Type.Literal('STRUCTURED_OUTPUT'), Type.Literal('TOOL_SUSPENDED'),
  Type.Literal('REASONING_STOP_REQUESTED'), Type.Literal('ACTING_STOP_REQUESTED'), Type.Literal('PERMISSION_ASKING'),
  Type.Literal('MIDDLEWARE_STOP_REQUESTED'), Type.Literal('ALL_TOOLS_DENIED'), Type.Literal('INTERRUPTED'),
  Type.Literal('MAX_ITERATIONS')
])
/** @see {@link GenerateReason} */
export type GenerateReason = Static<typeof GenerateReason>

const reasons: ReadonlySet<unknown> = new Set(GenerateReason.anyOf.map((literal) => literal.const))

/** True for one of the known reasons. */
export function isGenerateReason (value: unknown): value is GenerateReason {
  return reasons.has(value)
}
