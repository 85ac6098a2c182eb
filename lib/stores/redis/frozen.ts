/** Freezes what was just read, all through, and returns it. */
export function frozen<T> (value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) frozen(member)
    Object.freeze(value)
  }
  return value
}
