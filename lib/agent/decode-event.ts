import { type TSchema, Type } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Check } from '@sinclair/typebox/value'
import { ToolResultState } from './blocks.ts'
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

function decodeMembers (fields: Fields): Fields {
  for (const key of ['state', 'executor'] as const) {
    if (typeof fields[key] === 'string') fields[key] = fields[key].toLowerCase()
  }
  if (fields.type === 'TOOL_RESULT_END' && !Check(ToolResultState, fields.state)) fields.state = fields.state === undefined ? 'success' : 'error'
  if (fields.type === 'CUSTOM') fields.value ??= {}
  for (const key of ['toolCalls', 'deniedToolCalls', 'toolResults'] as const) {
    if (key in fields) fields[key] = decodeBlocks(fields[key])
  }
  if ('data' in fields) fields.data = decodeBlocks([fields.data])[0]
  if ('result' in fields) fields.result = decodeMessage(fields.result)
  if (Array.isArray(fields.confirmResults)) fields.confirmResults = fields.confirmResults.flatMap(decodeConfirmResult)
  if (Array.isArray(fields.requests)) fields.requests = fields.requests.flatMap(decodeRequest)
  if (isObject(fields.usage)) withoutNulls(fields.usage)
  return fields
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
