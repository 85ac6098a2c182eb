import { randomBytes } from 'node:crypto'

// Twenty random digits tell processes apart, twelve count: unique without a random draw per event.
const prefix = randomBytes(10).toString('hex')
// Few enough to stay in the processor's nearest cache.
const low = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))
let high = prefix + '0000000000'
let count = 0

/** A fresh event id: 32 hex characters, unique across processes. Not a secret: the next one can be guessed. */
export function newId (): string {
  const id = high + (low[count & 0xff] as string) // there are 256
  count++
  if ((count & 0xff) === 0) high = prefix + (count / 256).toString(16).padStart(10, '0')
  return id
}

let millisecond = 0
let text = ''

/** The present as ISO 8601 in UTC; formatted once a millisecond. */
export function timestamp (): string {
  const now = Date.now()
  if (now !== millisecond) {
    millisecond = now
    text = new Date(now).toISOString()
  }
  return text
}

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

/** True for an instant as Java and JavaScript write it. */
export function isTimestamp (value: unknown): value is string {
  return typeof value === 'string' && instant.test(value)
}
