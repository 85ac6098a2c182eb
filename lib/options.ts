import createError from '@fastify/error'

/** An option has a value that cannot be used; thrown while registering, never replaced by a default. */
export const InvalidOptionError = createError<[string, string, string]>('AGT_ERR_OPTION_INVALID', 'Option "%s" cannot be %s: %s.', 500)

/** Bounds of a number option. */
export interface NumberRule {
  /** Value where the option is absent. */
  readonly default: number
  /** Smallest value. @default 0 */
  readonly min?: number
  /** Largest value. @default Number.MAX_SAFE_INTEGER */
  readonly max?: number
  /** Whether 0 is taken although `min` is larger: it turns the thing off. @default false */
  readonly zeroIsOff?: boolean
}

/** Node's timers fire at once for anything longer than this, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647

/** Reads a whole number. @throws AGT_ERR_OPTION_INVALID with the option's name and value */
export function readInteger (name: string, value: unknown, rule: NumberRule): number {
  if (value === undefined) return rule.default
  if (value === 0 && rule.zeroIsOff === true) return 0
  const min = rule.min ?? 0
  const max = rule.max ?? Number.MAX_SAFE_INTEGER
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new InvalidOptionError(name, describe(value), `it is a whole number from ${min} to ${max}${rule.zeroIsOff === true ? ', or 0 for off' : ''}`)
  }
  return value as number // proved by isSafeInteger
}

/** Reads a duration in whole milliseconds that a timer can keep. @throws AGT_ERR_OPTION_INVALID */
export function readMs (name: string, value: unknown, rule: NumberRule): number {
  return readInteger(name, value, { ...rule, max: rule.max ?? MAX_TIMER_MS })
}

/** Reads one of a few literal values. @throws AGT_ERR_OPTION_INVALID */
export function readChoice<T extends string | number | boolean> (name: string, value: unknown, choices: readonly T[], fallback: T): T {
  if (value === undefined) return fallback
  const choice = choices.find((known) => known === value)
  if (choice === undefined) throw new InvalidOptionError(name, describe(value), `it is one of ${choices.join(', ')}`)
  return choice
}

/** Reads a switch. @throws AGT_ERR_OPTION_INVALID */
export function readBoolean (name: string, value: unknown, fallback: boolean): boolean {
  return readChoice(name, value, [true, false], fallback)
}

/** Reads a function. @throws AGT_ERR_OPTION_INVALID */
export function readFunction<T extends (...args: never[]) => unknown> (name: string, value: T | undefined): T | undefined {
  if (value !== undefined && typeof value !== 'function') throw new InvalidOptionError(name, describe(value), 'it is a function')
  return value
}

function describe (value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
