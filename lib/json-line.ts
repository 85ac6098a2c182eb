/** What JSON allows on one line and clients that split by Unicode's rules do not. */
const SEPARATORS = /[\u0085\u2028\u2029]/g
// Everything that JSON or one line escapes; surrogates too, because a lone half must not reach UTF-8.
const SPECIAL = /["\\\u0000-\u001f\u0085\u2028\u2029\ud800-\udfff]/ // eslint-disable-line no-control-regex

// Called, the engine makes one comparison of it within a loop over keys; `Object.hasOwn` it always calls.
const { hasOwnProperty: hasOwn } = Object.prototype

/** Characters up to which a loop over a text is faster than a regular expression. */
const SHORT = 32
/** For each ASCII character: 1 where JSON has it as it is. */
const plainUnits = Uint8Array.from({ length: 0x80 }, (_, unit) => SPECIAL.test(String.fromCharCode(unit)) ? 0 : 1)

/** How a member begins, by its key, as the first of its object or a later one: before a string that needs no escaping, and before anything else. */
interface Lead {
  readonly firstText: string
  readonly nextText: string
  readonly first: string
  readonly next: string
}

/** Those of the keys that came first; so many are kept. */
const leads = new Map<string, Lead>()
const MAX_LEADS = 1_000

/** Escapes U+0085, U+2028 and U+2029 in a text of JSON, where they can only stand in strings. */
export function escapeSeparators (json: string): string {
  // The engine searches one character by memory scan, and not at all for one that the text's own width excludes.
  if (!json.includes('\u0085') && !json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replace(SEPARATORS, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whether a text stands in JSON on one line as it is, between quotes. Most short ones do, and a look costs less than half of JSON.stringify. */
export function isPlain (text: string): boolean {
  if (text.length > SHORT) return !SPECIAL.test(text)
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    // What is not ASCII may be plain too.
    if (unit >= 0x80) return !SPECIAL.test(text)
    if (plainUnits[unit] === 0) return false
  }
  return true
}

/** A string as JSON on one line. */
export function quoteLine (text: string): string {
  return isPlain(text) ? `"${text}"` : escapeSeparators(JSON.stringify(text))
}

/**
 * A value as JSON on one line: the text of `JSON.stringify` with {@link escapeSeparators}, in less than half of its time for
 * what events mostly are, an object of short strings. Undefined where JSON has no text for the value.
 * @throws what JSON.stringify throws, and what a getter throws
 */
export function jsonLine (value: unknown): string | undefined {
  const flat = flatLine(value)
  if (flat !== undefined) return flat
  const text: unknown = JSON.stringify(value) // undefined for a function, a symbol, undefined
  return typeof text === 'string' ? escapeSeparators(text) : undefined
}

/** The text of a plain object whose members are no objects; undefined for everything else. */
function flatLine (value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype || 'toJSON' in value) return undefined
  let text = ''
  for (const key in value) {
    if (!hasOwn.call(value, key)) return undefined // somebody has extended Object.prototype
    const member = (value as Record<string, unknown>)[key]
    const lead = leads.get(key) ?? leadOf(key)
    if (typeof member === 'string' && isPlain(member)) text += `${text === '' ? lead.firstText : lead.nextText}${member}"`
    else {
      const json = scalar(member)
      if (json === undefined) return undefined
      text += (text === '' ? lead.first : lead.next) + json
    }
  }
  return text === '' ? '{}' : `${text}}`
}

function scalar (value: unknown): string | undefined {
  switch (typeof value) {
    case 'string': return quoteLine(value)
    case 'number': return Number.isFinite(value) ? String(value) : 'null'
    case 'boolean': return value ? 'true' : 'false'
    default: return value === null ? 'null' : undefined
  }
}

function leadOf (key: string): Lead {
  const quoted = quoteLine(key)
  const lead = { firstText: `{${quoted}:"`, nextText: `,${quoted}:"`, first: `{${quoted}:`, next: `,${quoted}:` }
  if (leads.size < MAX_LEADS) leads.set(key, lead)
  return lead
}
