/**
 * A deep copy through JSON, frozen all through. What JSON can not carry is lost here as it would be in any other backend, and
 * neither the giver nor a reader can change what the store holds.
 */
export function frozenJson<T> (value: T): T {
  return deepFreeze(JSON.parse(JSON.stringify(value)) as T) // as T: the ports take plain JSON only
}

/** The value, frozen all through. */
export function deepFreeze<T> (value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member)
    Object.freeze(value)
  }
  return value
}
