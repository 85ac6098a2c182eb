import { AgentError, contextKey, isObject, type JsonObject, type JsonValue, type RuntimeContext } from '../../../lib/agent/index.ts'

/** What the reference's users set on the context: attributes of this call. */
export const REMOTE_ATTRIBUTES = 'agentscope.subagent.remote_context_attributes'

/** Attributes of this call, set on the server: `context.set(remoteAttributes, { tenant: 'acme' })`. They win over those of {@link REMOTE_ATTRIBUTES}. */
export const remoteAttributes = contextKey<JsonObject>('remote attributes')

/** What a task service takes: 16 levels with the context around them. */
const MAX_BYTES = 65_536
const MAX_DEPTH = 15

/**
 * The attributes of one task: the agent's own, the call's laid over them, values that are null left out.
 * @throws AgentError `invalid_attributes` for what is not JSON, too deep or too large: nothing is submitted then
 */
export function attributesOf (own: JsonObject, context: Pick<RuntimeContext, 'attributes' | 'get'>): JsonObject {
  const named = context.attributes.get(REMOTE_ATTRIBUTES)
  if (named !== undefined && !isObject(named)) throw invalid(`"${REMOTE_ATTRIBUTES}" is no object`)
  const merged = Object.assign(Object.create(null) as Record<string, JsonValue>, own, named, context.get(remoteAttributes))
  for (const key of Object.keys(merged)) if (merged[key] === null || merged[key] === undefined) delete merged[key]
  const problem = findProblem(merged)
  if (problem !== undefined) throw invalid(problem)
  return merged
}

/** Why attributes cannot be sent; undefined when they can. */
export function findProblem (attributes: unknown): string | undefined {
  if (!isObject(attributes)) return 'the whole is no object'
  const problem = findNonJson(attributes, [])
  if (problem !== undefined) return problem
  return Buffer.byteLength(JSON.stringify(attributes)) > MAX_BYTES ? `the whole is larger than ${MAX_BYTES} bytes` : undefined
}

/** Where a value is not what JSON would carry unchanged, and why. */
function findNonJson (value: unknown, path: readonly string[]): string | undefined {
  switch (typeof value) {
    case 'string': return value.isWellFormed() ? undefined : `${at(path)} has half a character`
    case 'boolean': return undefined
    case 'number': return Number.isFinite(value) ? undefined : `${at(path)} is ${value}`
    case 'object': return value === null ? undefined : findInObject(value, path)
    default: return `${at(path)} is ${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`}`
  }
}

function findInObject (value: object, path: readonly string[]): string | undefined {
  if (path.length >= MAX_DEPTH) return `${at(path)} is nested deeper than ${MAX_DEPTH} levels`
  if (!Array.isArray(value)) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return `${at(path)} is no plain object`
    if (Object.hasOwn(value, '__proto__')) return `${at(path)} has a member named __proto__`
  }
  for (const [key, member] of Object.entries(value)) {
    const problem = findNonJson(member, [...path, key])
    if (problem !== undefined) return problem
  }
  return undefined
}

function at (path: readonly string[]): string {
  return path.length === 0 ? 'the whole' : `"${path.join('.')}"`
}

function invalid (problem: string): AgentError {
  return new AgentError({ code: 'invalid_attributes', message: `The attributes of a remote task must be JSON, but ${problem}.`, statusCode: 500 })
}
