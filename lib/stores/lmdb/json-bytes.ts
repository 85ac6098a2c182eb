/** JSON as it is stored. */
export function jsonBytes (value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/** What {@link jsonBytes} stored, from an offset on. */
export function jsonOf<T> (bytes: Buffer, from = 0): T {
  return JSON.parse(bytes.toString('utf8', from)) as T // as T: the caller stored one
}
