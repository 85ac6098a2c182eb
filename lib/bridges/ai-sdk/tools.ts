import { asSchema, jsonSchema, type ModelMessage, type Schema, type ToolSet } from 'ai'
import { createPermissions, type JsonObject, type PermissionRule, type Tool, toJson, type ToolContext, type ToolDefinition, type ToolYield } from '../../agent/index.ts'
import { plain } from './provider-metadata.ts'
import type { ToolOutput } from './tool-output.ts'

type NativeTool = ToolSet[string]

/** What a tool of `ai` wants to know of the run that it is called in, and what it leaves behind. */
export interface ToolRun {
  /** The conversation up to the answer that holds the call. */
  readonly history: () => ModelMessage[]
  /** What tools with `toModelOutput` show the model instead of their output. */
  readonly outputs: Map<string, ToolOutput>
}

/** An agent's own tools, ready to be offered and run. */
export interface OwnTools {
  /** For one run. */
  bind (run: ToolRun): readonly Tool[]
  /** As the model is offered it; undefined for a tool that the provider runs and a deny rule names: nobody here could stop its calls. */
  offer (definition: ToolDefinition, denyRules: readonly PermissionRule[]): NativeTool | undefined
}

const noParameters: JsonObject = { type: 'object', properties: {} }

/** Reads an agent's tools once. Schemas of any library become JSON Schema here; their own checks still run before a tool does. */
export async function readTools (tools: ToolSet | readonly Tool[]): Promise<OwnTools> {
  // A tool set is an object by its type.
  if (Array.isArray(tools)) return { bind: () => tools as readonly Tool[], offer: offerDefinition }
  const native = new Map<string, { readonly source: NativeTool, readonly schema: Schema, readonly parameters: JsonObject }>()
  for (const [name, source] of Object.entries(tools as ToolSet)) {
    const schema = asSchema(source.inputSchema)
    native.set(name, { source, schema, parameters: plain(await schema.jsonSchema) })
  }
  return {
    bind: (run) => [...native].map(([name, { source, schema, parameters }]) => toTool(name, source, schema, parameters, run)),
    offer: (definition, denyRules) => {
      const own = native.get(definition.name)
      // A page's tool may have taken the name.
      if (own === undefined || own.parameters !== definition.parameters) return offerDefinition(definition)
      // Neither run nor asked about by the SDK: that is ours to do, after the deny rules. The model's words are checked then, too.
      const { execute, needsApproval, ...rest } = own.source
      if (rest.type === 'provider' && execute === undefined && isNamed(definition.name, denyRules)) return undefined
      return { ...rest, inputSchema: jsonSchema(own.parameters) } as NativeTool // the members that were left out are optional
    }
  }
}

/** Whether any rule may forbid a call of this name: what would be in it is not known. */
function isNamed (name: string, denyRules: readonly PermissionRule[]): boolean {
  const byName = createPermissions(denyRules.map((rule) => ({ ...rule, rule_content: '' })))
  return byName.check({ name, input: {} }).behavior === 'deny'
}

function offerDefinition ({ description, parameters, strict }: ToolDefinition): NativeTool {
  return {
    ...description !== undefined && { description },
    ...strict !== undefined && { strict },
    inputSchema: jsonSchema(parameters ?? noParameters)
  }
}

function toTool (name: string, source: NativeTool, schema: Schema, parameters: JsonObject, run: ToolRun): Tool {
  const { description, needsApproval, execute } = source
  return {
    name,
    ...description !== undefined && { description },
    parameters,
    ...needsApproval !== undefined && {
      needsApproval: typeof needsApproval === 'boolean'
        ? needsApproval
        : async (input: JsonObject, { toolCallId, runtime }: ToolContext) => {
          const checked = await check(schema, input)
          // Input that is wrong needs nobody's approval: its call ends with the error.
          return checked.success && await needsApproval(checked.value, { toolCallId, messages: run.history(), experimental_context: runtime })
        }
    },
    ...execute !== undefined && { execute: (input: JsonObject, context: ToolContext) => runNative(source, execute, schema, input, context, run) }
  }
}

async function * runNative (
  source: NativeTool, execute: NonNullable<NativeTool['execute']>, schema: Schema, input: JsonObject, { toolCallId, signal, runtime }: ToolContext, run: ToolRun
): AsyncGenerator<ToolYield, JsonValueOrNone, undefined> {
  const checked = await check(schema, input)
  if (!checked.success) throw checked.error
  const { value } = checked
  const running: unknown = execute.call(source, value, { toolCallId, messages: run.history(), abortSignal: signal, experimental_context: runtime })
  let output: unknown
  if (isAsyncIterable(running)) {
    for await (output of running) {
      yield { type: 'CUSTOM', name: 'tool_progress', value: { toolCallId, output: toJson(output) ?? null } }
    }
  } else {
    output = await running
  }
  if (source.toModelOutput !== undefined) run.outputs.set(toolCallId, await source.toModelOutput({ toolCallId, input: value, output }))
  return toJson(output)
}

type JsonValueOrNone = ReturnType<typeof toJson>

/** The input as the tool's own schema makes it: defaults filled in, texts turned into dates. */
async function check (schema: Schema, input: JsonObject): Promise<Checked> {
  return await schema.validate?.(input) ?? { success: true, value: input }
}

type Checked = Awaited<ReturnType<NonNullable<Schema['validate']>>>

function isAsyncIterable (value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
