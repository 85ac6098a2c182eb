import { type TSchema, Type } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Check } from '@sinclair/typebox/value'
import { ToolResultState, type ToolUseBlock } from './blocks.ts'
import { decodeBlocks, decodeMessage, withoutNulls } from './decode-message.ts'
import { type AgentEvent, type AgentEventInit, agentEventSchemas, type AgentEventType, isAgentEventType } from './events.ts'
import { isObject, toJson } from './json.ts'

type Fields = Record<string, unknown>

const checks = new Map<AgentEventType, TypeCheck<TSchema>>()

/**
 * Reads an event from JSON text or a parsed value, tolerantly: ids may be missing, nulls count as absent, roles and states
 * may be in any case, unknown members stay, optional members of a wrong type are dropped (agent-events 1.4, 9.1).
 * Undefined when it is no event.
 */
export function decodeEvent (source: unknown): AgentEventInit | undefined {
  try {
    const value = toJson(typeof source === 'string' ? JSON.parse(source) : source)
    return isObject(value) ? decodeFields(value) : undefined
  } catch {
    // Not JSON, cyclic, or a getter that throws: no event.
    return undefined
  }
}

/**
 * Writes an event as one line of JSON, strictly.
 *
 * @throws TypeError when it does not match the schema of its type.
 */
export function encodeEvent (event: AgentEvent): string {
  const type: unknown = event.type
  if (!isAgentEventType(type)) throw new TypeError(`Unknown event type ${String(type)}`)
  const check = checkOf(type)
  if (!check.Check(event) || typeof event.id !== 'string' || typeof event.createdAt !== 'string') {
    const error = check.Errors(event).First()
    throw new TypeError(`Invalid ${type} event: ${error === undefined ? 'it has no id or time' : `${error.path} ${error.message}`}`)
  }
  return JSON.stringify(event)
}

/** {@link decodeEvent} for a value that is plain JSON and the caller's own: it is changed in place. */
export function decodeFields (value: Fields): AgentEventInit | undefined {
  const type = value.type
  if (!isAgentEventType(type)) return undefined
  const fields = decodeMembers(withoutNulls(value))
  const check = checkOf(type)
  if (!check.Check(fields)) {
    dropWrongMembers(type, fields)
    if (!check.Check(fields)) return undefined
  }
  // Checked against the schema of its type; id and createdAt are the optional ones.
  return fields as AgentEventInit
}

function checkOf (type: AgentEventType): TypeCheck<TSchema> {
  let check = checks.get(type)
  if (check === undefined) {
    const { properties } = agentEventSchemas[type]
    check = TypeCompiler.Compile(Type.Object({
      ...properties, id: Type.Optional(properties.id), createdAt: Type.Optional(properties.createdAt)
    }, { additionalProperties: true }))
    checks.set(type, check)
  }
  return check
}

/** Decodes the members that the type defines; a member of the same name elsewhere is foreign and stays. */
function decodeMembers (fields: Fields): Fields {
  switch (fields.type as AgentEventType) {
    case 'TOOL_CALL_START':
      if (typeof fields.executor === 'string') fields.executor = fields.executor.toLowerCase()
      break
    case 'TOOL_RESULT_END':
      fields.state = decodeState(fields.state)
      break
    case 'TOOL_RESULT_DATA_DELTA':
      [fields.data] = decodeBlocks([fields.data])
      break
    case 'REQUIRE_USER_CONFIRM': case 'REQUIRE_EXTERNAL_EXECUTION':
      fields.toolCalls = decodeCalls(fields.toolCalls)
      break
    case 'ALL_TOOLS_DENIED':
      fields.deniedToolCalls = decodeCalls(fields.deniedToolCalls)
      break
    case 'EXTERNAL_EXECUTION_RESULT':
      fields.toolResults = decodeBlocks(fields.toolResults).filter(({ type }) => type === 'tool_result')
      break
    case 'USER_CONFIRM_RESULT':
      fields.confirmResults = listOf(fields.confirmResults).flatMap(decodeConfirmResult)
      break
    case 'REQUIRE_INPUT':
      fields.requests = listOf(fields.requests).flatMap(decodeRequest)
      break
    case 'AGENT_RESULT':
      fields.result = decodeMessage(fields.result)
      break
    case 'MODEL_CALL_END':
      if (isObject(fields.usage)) withoutNulls(fields.usage)
      break
    case 'CUSTOM':
      fields.value ??= {}
      break
    default:
  }
  return fields
}

function decodeState (state: unknown): string {
  const known = typeof state === 'string' ? state.toLowerCase() : state ?? 'success'
  return Check(ToolResultState, known) ? known : 'error'
}

function decodeCalls (value: unknown): ToolUseBlock[] {
  return decodeBlocks(value).filter((block) => block.type === 'tool_use' && block.id !== '') as ToolUseBlock[]
}

function listOf (value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function decodeConfirmResult (value: unknown): Fields[] {
  if (!isObject(value) || typeof value.confirmed !== 'boolean') return []
  const result = withoutNulls(value)
  const [toolCall] = decodeBlocks([result.toolCall])
  if (toolCall?.type !== 'tool_use') return []
  if (Array.isArray(result.rules)) result.rules.filter(isObject).forEach(decodeRule)
  else delete result.rules
  return [{ ...result, toolCall }]
}

function decodeRule (rule: Fields): void {
  withoutNulls(rule)
  if (typeof rule.behavior === 'string') rule.behavior = rule.behavior.toLowerCase()
}

function decodeRequest (value: unknown): Fields[] {
  if (!isObject(value)) return []
  const request = withoutNulls(value)
  return typeof request.id === 'string' && request.id !== '' ? [{ ...request, reason: request.reason ?? 'input_required' }] : []
}

/** Ids may be numbers; an optional member of a wrong type says nothing. */
function dropWrongMembers (type: AgentEventType, fields: Fields): void {
  for (const [key, schema] of Object.entries<TSchema>(agentEventSchemas[type].properties)) {
    const value = fields[key]
    if (schema.type === 'string' && typeof value === 'number') fields[key] = String(value)
    else if (value !== undefined && !Check(schema, value)) delete fields[key]
  }
}
