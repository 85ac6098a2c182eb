/// <reference lib="es2024.string" />
import { Type } from '@sinclair/typebox'

/** Any value that JSON can carry. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject

/** A JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue }

/** Schema of a JSON object with any members. */
export const JsonObject = Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true }))

/** Schema of any JSON value. */
export const JsonValue = Type.Unsafe<JsonValue>(Type.Unknown())

/** Nesting at which a value counts as not JSON: deeper ones overflow the stack of `JSON.stringify`, cyclic ones have no end. */
const maxDepth = 200

/**
 * Copies a value into plain JSON: what `JSON.stringify` would keep, with `__proto__` keys and lone surrogates
 * removed. The copy shares nothing with its source, so an agent may go on changing what it yielded.
 *
 * @throws TypeError when the value is cyclic or nested deeper than 200 levels.
 */
export function toJson (value: unknown): JsonValue | undefined {
  return copy(value, 0)
}

/** True for objects that are neither null nor arrays. */
export function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function copy (value: unknown, depth: number): JsonValue | undefined {
  switch (typeof value) {
    case 'string': return wellFormed(value)
    case 'number': return Number.isFinite(value) ? value : null
    case 'boolean': return value
    case 'bigint': return value.toString()
    case 'object': return value === null ? null : copyObject(value, depth)
    default: return undefined
  }
}

function copyObject (value: object, depth: number): JsonValue | undefined {
  if (depth === maxDepth) throw new TypeError(`The value is cyclic or nested deeper than ${maxDepth} levels`)
  if ('toJSON' in value && typeof value.toJSON === 'function') return copy(value.toJSON(), depth + 1)
  if (Array.isArray(value)) return value.map((item) => copy(item, depth + 1) ?? null)
  const result: Record<string, JsonValue> = {}
  for (const [key, member] of Object.entries(value)) {
    // An own `__proto__` (JSON.parse makes one) would turn into a prototype at the first Object.assign.
    if (key === '__proto__') continue
    const item = copy(member, depth + 1)
    if (item !== undefined) result[wellFormed(key)] = item
  }
  return result
}

/** Replaces lone surrogates by U+FFFD, so that every encoder writes the same bytes. */
export function wellFormed (text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed()
}
