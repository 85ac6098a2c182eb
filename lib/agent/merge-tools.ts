import { isObject } from './json.ts'
import type { ToolDefinition, ToolMergeMode, ToolMergeModeName } from './tool-definition.ts'

const modes: Readonly<Record<ToolMergeModeName, ToolMergeMode>> = {
  EXTERNAL_ONLY: 'EXTERNAL_ONLY',
  AGENT_ONLY: 'AGENT_ONLY',
  MERGE_EXTERNAL_PRIORITY: 'MERGE_EXTERNAL_PRIORITY',
  MERGE_AGENT_PRIORITY: 'MERGE_AGENT_PRIORITY',
  FRONTEND_ONLY: 'EXTERNAL_ONLY',
  MERGE_FRONTEND_PRIORITY: 'MERGE_EXTERNAL_PRIORITY',
  'client-only': 'EXTERNAL_ONLY',
  'agent-only': 'AGENT_ONLY',
  merge: 'MERGE_EXTERNAL_PRIORITY'
}

/** Why a tool of the request was left out. */
export interface SkippedTool {
  readonly name: string
  readonly reason: 'reserved-name' | 'duplicate' | 'no-object-schema' | 'shadowed'
}

/** The tools of one run. */
export interface MergedTools<T extends ToolDefinition = ToolDefinition> {
  /** What the model sees, the agent's own first. */
  readonly tools: readonly (T | ToolDefinition)[]
  /** The agent's own among them. */
  readonly agentTools: readonly T[]
  /** Names of those that the client executes. */
  readonly clientTools: ReadonlySet<string>
  /** The request's tools that were left out although the mode would take them. */
  readonly skipped: readonly SkippedTool[]
}

/** The mode that a name stands for; undefined when it is none. */
export function parseToolMergeMode (name: unknown): ToolMergeMode | undefined {
  return typeof name === 'string' && Object.hasOwn(modes, name) ? modes[name as ToolMergeModeName] : undefined
}

/**
 * The tools of one run (ag-ui 19.1). Nothing is registered anywhere: two runs of one agent never see each other's tools.
 * Tools of the request whose name begins with `__`, repeats an earlier one, or whose parameters are no object schema
 * are skipped.
 *
 * @param mode `MERGE_EXTERNAL_PRIORITY` when null or absent: the request's tool wins a clash of names. With
 * `MERGE_AGENT_PRIORITY` a browser cannot shadow a tool of the server.
 */
export function mergeTools<T extends ToolDefinition> (
  mode: ToolMergeModeName | null | undefined, agentTools: readonly T[], requestTools: readonly ToolDefinition[] = []
): MergedTools<T> {
  const canonical = modes[mode ?? 'MERGE_EXTERNAL_PRIORITY']
  const skipped: SkippedTool[] = []
  const external = canonical === 'AGENT_ONLY' ? [] : usable(requestTools, skipped)
  let own = canonical === 'EXTERNAL_ONLY' ? [] : agentTools
  let client = external
  if (canonical === 'MERGE_AGENT_PRIORITY') {
    const names = namesOf(own)
    client = external.filter(({ name }) => !names.has(name))
    for (const { name } of external) if (names.has(name)) skipped.push({ name, reason: 'shadowed' })
  } else {
    const names = namesOf(external)
    own = own.filter(({ name }) => !names.has(name))
  }
  return { tools: [...own, ...client], agentTools: own, clientTools: namesOf(client), skipped }
}

function usable (tools: readonly ToolDefinition[], skipped: SkippedTool[]): ToolDefinition[] {
  const names = new Set<string>()
  return tools.filter(({ name, parameters }) => {
    const reason = name.startsWith('__') ? 'reserved-name' : names.has(name) ? 'duplicate' : 'no-object-schema'
    const isUsable = reason === 'no-object-schema' && isObjectSchema(parameters)
    if (isUsable) names.add(name)
    else skipped.push({ name, reason })
    return isUsable
  })
}

/** Absent parameters are a tool without any. */
function isObjectSchema (parameters: unknown): boolean {
  if (parameters === undefined || parameters === null) return true
  return isObject(parameters) && (parameters.type === undefined || parameters.type === 'object')
}

function namesOf (tools: readonly ToolDefinition[]): Set<string> {
  return new Set(tools.map(({ name }) => name))
}
