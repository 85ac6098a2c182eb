import { type Static, Type } from '@sinclair/typebox'

/** What a rule says about a call. */
export const PermissionBehavior = Type.Union([
  Type.Literal('allow'), Type.Literal('deny'), Type.Literal('ask'), Type.Literal('passthrough')
])
/** @see {@link PermissionBehavior} */
export type PermissionBehavior = Static<typeof PermissionBehavior>

/** A permission rule, in the snake case of the wire (agent-events 1.2, agent-protocol 6.3). */
export const PermissionRule = Type.Object({
  tool_name: Type.String({ minLength: 1 }),
  rule_content: Type.Optional(Type.String()),
  behavior: PermissionBehavior,
  source: Type.Optional(Type.String())
}, { additionalProperties: true })
/** @see {@link PermissionRule} */
export type PermissionRule = Static<typeof PermissionRule>
