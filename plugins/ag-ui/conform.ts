import { KindGuard, OptionalKind, type TObject, type TSchema, type TUnion } from '@sinclair/typebox'
import { type InputIssue } from './schemas.ts'

/** Where the answer to bad input stops listing, so that a hostile body cannot buy a large one. */
const MAX_ISSUES = 20

/** What came of conforming a value. */
export interface Conformed {
  /** A copy that holds only what the schema knows; meaningless when there are issues. */
  readonly value: unknown
  /** What does not fit: at most 20, without the values themselves. */
  readonly issues: readonly InputIssue[]
  /** Paths of members that were left out because nobody knows them: at most 20. */
  readonly unknown: readonly string[]
}

/**
 * Copies a JSON value into the shape of a TypeBox schema: unknown members are left out, a null in an optional member
 * counts as absent, and opaque values (`Type.Unknown`, records) are taken as they are. Objects in unions are told apart by the
 * member that is a literal in each of them, so that an issue names the field and not merely the union.
 * @param maxDepth how deep opaque values may reach, counted from the top; deeper is an issue, and is never walked
 */
export function conform (schema: TSchema, value: unknown, maxDepth: number): Conformed {
  const walk = new Walk(maxDepth)
  return { value: walk.any(schema, value, '', 0), issues: walk.issues, unknown: walk.unknown }
}

class Walk {
  readonly issues: InputIssue[] = []
  readonly unknown: string[] = []
  readonly #maxDepth: number

  constructor (maxDepth: number) {
    this.#maxDepth = maxDepth
  }

  any (schema: TSchema, value: unknown, path: string, depth: number): unknown {
    if (KindGuard.IsObject(schema)) return this.#object(schema, value, path, depth)
    if (KindGuard.IsUnion(schema)) return this.#union(schema, value, path, depth)
    if (KindGuard.IsString(schema)) {
      if (typeof value !== 'string') return this.#wrong(path, value, 'a string')
      if (schema.minLength !== undefined) return value.trim() === '' ? this.#issue(path, 'must not be blank') : value
      return schema.pattern === undefined || new RegExp(schema.pattern).test(value) ? value : this.#issue(path, 'has not the form it must have')
    }
    if (KindGuard.IsInteger(schema)) {
      if (typeof value !== 'number') return this.#wrong(path, value, 'a whole number')
      return Number.isSafeInteger(value) && value >= (schema.minimum ?? value) ? value : this.#issue(path, 'must be a whole number in range')
    }
    if (KindGuard.IsBoolean(schema)) return typeof value === 'boolean' ? value : this.#wrong(path, value, 'true or false')
    if (KindGuard.IsLiteral(schema)) return value === schema.const ? value : this.#wrong(path, value, JSON.stringify(schema.const))
    if (KindGuard.IsArray(schema)) {
      if (!Array.isArray(value)) return this.#wrong(path, value, 'an array')
      return value.map((item, index) => this.any(schema.items, item, `${path}[${index}]`, depth + 1))
    }
    if (KindGuard.IsRecord(schema) && !isObject(value)) return this.#wrong(path, value, 'an object')
    return this.#opaque(value, path, depth)
  }

  #object (schema: TObject, value: unknown, path: string, depth: number): unknown {
    if (!isObject(value)) return this.#wrong(path, value, 'an object')
    const copy: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(schema.properties)) {
      const at = path === '' ? key : `${path}.${key}`
      const own = Object.hasOwn(value, key) ? value[key] : undefined
      const optional = member[OptionalKind] === 'Optional'
      if (own === undefined || (own === null && optional)) {
        if (!optional) this.#issue(at, 'required')
      } else {
        copy[key] = this.any(member, own, at, depth + 1)
      }
    }
    if (this.unknown.length < MAX_ISSUES) {
      for (const key of Object.keys(value)) {
        // The key is the caller's text: it is told apart by where it stands, not repeated in full.
        if (!Object.hasOwn(schema.properties, key)) this.unknown.push(`${path === '' ? '' : `${path}.`}${key.slice(0, 64)}`)
      }
      this.unknown.length = Math.min(this.unknown.length, MAX_ISSUES)
    }
    return copy
  }

  #union (schema: TUnion, value: unknown, path: string, depth: number): unknown {
    const objects: TObject[] = []
    const expected: string[] = []
    for (const member of schema.anyOf) {
      if (KindGuard.IsObject(member)) objects.push(member)
      else if (KindGuard.IsLiteral(member)) {
        if (value === member.const) return value
        expected.push(JSON.stringify(member.const))
      } else if (KindGuard.IsString(member)) {
        if (typeof value === 'string') return value
        expected.push('a string')
      } else {
        if (Array.isArray(value)) return this.any(member, value, path, depth)
        expected.push('an array')
      }
    }
    if (objects.length === 0) return this.#wrong(path, value, expected.join(' or '))
    if (!isObject(value)) return this.#wrong(path, value, 'an object')
    const key = tagOf(objects)
    const variant = objects.find((object) => object.properties[key]?.['const'] === value[key])
    if (variant !== undefined) return this.#object(variant, value, path, depth)
    const tags = objects.map((object) => JSON.stringify(object.properties[key]?.['const']))
    return this.#issue(`${path}.${key}`, `must be one of ${tags.join(', ')}`)
  }

  /** Takes a value as it is, after a look for what would hurt later: depth (JSON.stringify recurses) and keys that reach prototypes when merged. */
  #opaque (value: unknown, path: string, depth: number): unknown {
    let level: unknown[] = [value]
    for (let deep = depth; level.length > 0; deep++) {
      if (deep > this.#maxDepth) return this.#issue(path, `nested deeper than ${this.#maxDepth} levels`)
      const next: unknown[] = []
      for (const item of level) {
        if (Array.isArray(item)) {
          for (const child of item) if (typeof child === 'object' && child !== null) next.push(child)
        } else if (isObject(item)) {
          if (Object.hasOwn(item, '__proto__') || (isObject(item['constructor']) && Object.hasOwn(item['constructor'], 'prototype'))) {
            return this.#issue(path, 'holds a key that is not accepted')
          }
          for (const key in item) {
            const child = item[key]
            if (typeof child === 'object' && child !== null) next.push(child)
          }
        }
      }
      level = next
    }
    return value
  }

  #wrong (path: string, value: unknown, expected: string): undefined {
    return this.#issue(path, `must be ${expected}, not ${value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value}`)
  }

  #issue (path: string, reason: string): undefined {
    if (this.issues.length < MAX_ISSUES) this.issues.push({ path, reason })
    return undefined
  }
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The member that is a literal in each object of a union. */
function tagOf ([first, ...others]: readonly TObject[]): string {
  const isTag = (object: TObject, key: string): boolean => KindGuard.IsLiteral(object.properties[key])
  return Object.keys(first?.properties ?? {}).find((key) => first !== undefined && isTag(first, key) && others.every((object) => isTag(object, key))) ?? 'type'
}
