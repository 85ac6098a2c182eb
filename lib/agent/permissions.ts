import type { JsonObject } from './json.ts'
import type { PermissionRule } from './permission-rule.ts'

/** What the deny rules say about a call. */
export type PermissionResult =
  | { readonly behavior: 'allow' }
  | { readonly behavior: 'deny', readonly rule: PermissionRule }

/** A call as permissions see it. */
export interface PermissionQuery {
  readonly name: string
  readonly input: JsonObject
}

/** Asks the deny rules of a run, synchronously. */
export interface Permissions {
  check (call: PermissionQuery): PermissionResult
}

/** Text of a result that a rule denied, as the reference words it. */
export const deniedByRules = 'Permission denied by rules'

const allowed: PermissionResult = Object.freeze({ behavior: 'allow' })

/**
 * Makes a {@link Permissions} of rules; those whose behaviour is not `deny` are ignored.
 *
 * `tool_name` is the exact name or a glob in which `*` stands for any characters, none included. `rule_content` absent or
 * empty matches every input. Otherwise it is a glob over each string in the input, at any depth, and over the
 * input's JSON text; `prefix:*` also matches the prefix alone and the prefix followed by a space (`rm:*` matches `rm` and
 * `rm -rf /`). A rule denies when any of them matches: the doubtful case is a denial (agent-protocol 6.3).
 */
export function createPermissions (rules: readonly PermissionRule[]): Permissions {
  const matchers = rules.filter(({ behavior }) => behavior === 'deny').map(compile)
  return {
    check: (call) => {
      for (const { rule, matches } of matchers) {
        if (matches(call)) return { behavior: 'deny', rule }
      }
      return allowed
    }
  }
}

function compile (rule: PermissionRule): { rule: PermissionRule, matches (call: PermissionQuery): boolean } {
  const isName = glob(rule.tool_name)
  const content = rule.rule_content?.trim() ?? ''
  if (content === '') return { rule, matches: (call) => isName(call.name) }
  const isContent = contentMatcher(content)
  return { rule, matches: (call) => isName(call.name) && matchesInput(call.input, isContent) }
}

function contentMatcher (content: string): (text: string) => boolean {
  const isGlob = glob(content)
  if (!content.endsWith(':*')) return isGlob
  const prefix = content.slice(0, -2)
  const isPrefix = glob(prefix)
  const isCommand = glob(`${prefix} *`)
  return (text) => isGlob(text) || isPrefix(text) || isCommand(text)
}

function matchesInput (input: JsonObject, isMatch: (text: string) => boolean): boolean {
  const stack: unknown[] = [input]
  for (let value = stack.pop(); value !== undefined; value = stack.pop()) {
    if (typeof value === 'string') {
      if (isMatch(value) || isMatch(value.trim())) return true
    } else if (typeof value === 'object' && value !== null) {
      stack.push(...Object.values(value).filter((member) => member !== undefined))
    }
  }
  return isMatch(JSON.stringify(input))
}

/** Compares from star to star, without a regular expression: a rule is foreign text, and backtracking would be its weapon. */
function glob (pattern: string): (text: string) => boolean {
  const star = pattern.indexOf('*')
  if (star === -1) return (text) => text === pattern
  const lastStar = pattern.lastIndexOf('*')
  const first = pattern.slice(0, star)
  const pieces = pattern.slice(star, lastStar).split('*')
  const last = pattern.slice(lastStar + 1)
  return (text) => {
    if (!text.startsWith(first)) return false
    let at = first.length
    for (const piece of pieces) {
      const found = text.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    return text.length - last.length >= at && text.endsWith(last)
  }
}
