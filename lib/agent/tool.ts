import { Kind, type Static, type TSchema } from '@sinclair/typebox'
import type { ContentBlock } from './blocks.ts'
import type { RuntimeContext } from './context.ts'
import type { Decision } from './decision.ts'
import type { AgentEventInit } from './events.ts'
import { type JsonObject, type JsonValue, toJson } from './json.ts'
import type { Pending } from './pending.ts'
import type { ToolDefinition } from './tool-definition.ts'

/** What a tool gives: text, blocks, any JSON, or nothing. */
export type ToolOutput = string | readonly ContentBlock[] | JsonValue | undefined | void

/** What a tool may yield while it works: pieces of its text, and events (a child's, `CUSTOM tool_progress`). */
export type ToolYield = string | AgentEventInit

/** What surrounds one execution of a tool. */
export interface ToolContext {
  readonly toolCallId: string
  /** The run's signal: hand it to whatever takes one. */
  readonly signal: AbortSignal
  readonly runtime: RuntimeContext
  /** Answers to what the same call was suspended for. */
  readonly resume: readonly Decision[]
}

/** A tool that an agent can run by {@link runTool}. Also a {@link ToolDefinition} for its model. */
export interface Tool extends ToolDefinition {
  readonly name: string
  readonly description?: string
  readonly parameters?: JsonObject
  /** A human must approve before each execution, or when the predicate says so. @default false */
  readonly needsApproval?: boolean | ((input: JsonObject, context: ToolContext) => boolean | Promise<boolean>)
  /** Absent: executed outside, its call suspends the run. */
  readonly execute?: (input: JsonObject, context: ToolContext) =>
    ToolOutput | Promise<ToolOutput> | AsyncIterator<ToolYield, ToolOutput, undefined>
}

/** What {@link defineTool} takes. `parameters` is a TypeBox schema, which types the input, or plain JSON Schema. */
export interface ToolInit<P extends TSchema | JsonObject> {
  readonly name: string
  readonly description?: string
  readonly parameters?: P
  readonly strict?: boolean
  readonly needsApproval?: boolean | ((input: ToolInput<P>, context: ToolContext) => boolean | Promise<boolean>)
  readonly execute?: (input: ToolInput<P>, context: ToolContext) =>
    ToolOutput | Promise<ToolOutput> | AsyncIterator<ToolYield, ToolOutput, undefined>
}

/** The input that a tool's schema describes. */
export type ToolInput<P> = P extends TSchema ? Static<P> : JsonObject

/** Thrown by a tool to suspend its call: somebody else will answer it (agent-events 5). */
export class ToolSuspended extends Error {
  override readonly name = 'ToolSuspended'
  /** What is waited for; empty: for the result of this very call. */
  readonly pending: readonly Pending[]

  /** @param message Shown as the result's text for now. */
  constructor (message = '[Awaiting external execution]', pending: readonly Pending[] = []) {
    super(message)
    this.pending = pending
  }
}

/**
 * Makes a tool. Its input is checked against the schema before it runs, so `execute` may trust the types.
 *
 * @throws TypeError for a blank name or one that begins with `__`, which is kept for the framework.
 */
export function defineTool<const P extends TSchema | JsonObject = JsonObject> (init: ToolInit<P>): Tool {
  if (init.name.trim() === '' || init.name.startsWith('__')) throw new TypeError(`"${init.name}" is no name for a tool: it is blank or begins with __`)
  const { parameters, ...rest } = init
  // A copy without the symbols of TypeBox is what models and clients get. Input is checked before the functions see it.
  return Object.freeze({ ...rest, ...parameters !== undefined && { parameters: plainSchema(parameters) } }) as Tool
}

function plainSchema (schema: TSchema | JsonObject): JsonObject {
  return Kind in schema ? toJson(schema) as JsonObject : schema as JsonObject
}
