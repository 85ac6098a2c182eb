import { isObject } from '../../lib/agent/index.ts'
import { type PatchOperation } from './event-schemas.ts'

/**
 * Applies an RFC 6902 patch as the official client does: all of it, to a copy. Returns undefined where a step cannot be applied: the
 * client then warns and keeps what it had, and so must whoever follows along.
 */
export function applyPatch (document: unknown, patch: readonly PatchOperation[]): { readonly value: unknown } | undefined {
  // A root that can be replaced like any member.
  const root: Record<string, unknown> = { value: structuredClone(document) }
  return patch.every((operation) => applyOne(root, operation)) ? { value: root['value'] } : undefined
}

function applyOne (root: Record<string, unknown>, operation: PatchOperation): boolean {
  const { path } = operation
  switch (operation.op) {
    case 'add': return put(root, path, structuredClone(operation.value), true)
    case 'replace': return read(root, path) !== undefined && put(root, path, structuredClone(operation.value), false)
    case 'remove': return take(root, path) !== undefined
    case 'test': return equal(read(root, path)?.value, operation.value)
    case 'copy': {
      const source = read(root, operation.from)
      return source !== undefined && put(root, path, structuredClone(source.value), true, true)
    }
    case 'move': {
      if (path.startsWith(`${operation.from}/`)) return false
      const source = take(root, operation.from)
      return source !== undefined && put(root, path, source.value, true, true)
    }
  }
}

/** Keys from the root wrapper to the place a pointer names. */
function keysOf (pointer: string): string[] {
  return ['value', ...pointer.split('/').slice(1).map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))]
}

function parentOf (root: Record<string, unknown>, pointer: string): { readonly parent: unknown, readonly key: string } | undefined {
  const keys = keysOf(pointer)
  const key = keys.pop()
  if (key === undefined || key === '__proto__') return undefined
  let parent: unknown = root
  for (const step of keys) {
    const next = member(parent, step)
    if (next === undefined) return undefined
    parent = next.value
  }
  return { parent, key }
}

function member (parent: unknown, key: string): { readonly value: unknown } | undefined {
  if (Array.isArray(parent)) {
    const index = indexOf(key, parent.length - 1)
    return index === undefined ? undefined : { value: parent[index] }
  }
  return isObject(parent) && Object.hasOwn(parent, key) ? { value: parent[key] } : undefined
}

function read (root: Record<string, unknown>, pointer: string): { readonly value: unknown } | undefined {
  const place = parentOf(root, pointer)
  return place === undefined ? undefined : member(place.parent, place.key)
}

function take (root: Record<string, unknown>, pointer: string): { readonly value: unknown } | undefined {
  const place = parentOf(root, pointer)
  const taken = place === undefined ? undefined : member(place.parent, place.key)
  if (place === undefined || taken === undefined) return undefined
  const { parent, key } = place
  if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else if (parent === root) root['value'] = null
  else delete (parent as Record<string, unknown>)[key] // member() found it in an object
  return taken
}

/** @param lenient takes an index behind the list's end for its end, as the client does for what it moves and copies */
function put (root: Record<string, unknown>, pointer: string, value: unknown, insert: boolean, lenient = false): boolean {
  const place = parentOf(root, pointer)
  if (place === undefined) return false
  const { parent, key } = place
  if (Array.isArray(parent)) {
    const index = key === '-' && insert ? parent.length : indexOf(key, lenient ? Number.MAX_SAFE_INTEGER : insert ? parent.length : parent.length - 1)
    if (index === undefined) return false
    parent.splice(index, insert ? 0 : 1, value)
    return true
  }
  if (!isObject(parent)) return false
  parent[key] = value
  return true
}

function indexOf (key: string, max: number): number | undefined {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) <= max ? Number(key) : undefined
}

function equal (one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, index) => equal(item, other[index]))
  if (!isObject(one) || !isObject(other)) return false
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && equal(one[key], other[key]))
}
