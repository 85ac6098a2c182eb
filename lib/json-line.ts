/** What JSON allows on one line and clients that split by Unicode's rules do not. */
const SEPARATORS = /[\u0085\u2028\u2029]/g
// Everything that JSON or one line escapes; surrogates too, because a lone half must not reach UTF-8.
const SPECIAL = /["\\\u0000-\u001f\u0085\u2028\u2029\ud800-\udfff]/ // eslint-disable-line no-control-regex

/** Escapes U+0085, U+2028 and U+2029 in a text of JSON, where they can only stand in strings. */
export function escapeSeparators (json: string): string {
  // The engine searches one character by memory scan, and not at all for one that the text's own width excludes.
  if (!json.includes('\u0085') && !json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replace(SEPARATORS, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whether a text stands in JSON on one line as it is, between quotes. Most short ones do, and a look costs less than half of JSON.stringify. */
export function isPlain (text: string): boolean {
  return !SPECIAL.test(text)
}

/** A string as JSON on one line. */
export function quoteLine (text: string): string {
  return escapeSeparators(JSON.stringify(text))
}
