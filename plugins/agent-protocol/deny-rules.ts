import { isObject, type PermissionRule } from '../../lib/agent/index.ts'
import { TaskError } from './errors.ts'

/** Rules of one submission. */
const MAX_RULES = 1_000

/**
 * Reads `context.deny_rules`: a caller can only take permissions away (agent-protocol 6.3). Rules that say the same are one.
 * @throws AGT_ERR_TASK_INVALID_DENY_RULES
 */
export function readDenyRules (value: unknown): readonly PermissionRule[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw invalid('deny_rules is a list')
  if (value.length > MAX_RULES) throw invalid(`deny_rules takes at most ${MAX_RULES} rules`)
  const rules = new Map<string, PermissionRule>()
  value.forEach((item: unknown, index) => {
    const rule = readRule(item, index)
    rules.set(JSON.stringify([rule.tool_name, rule.rule_content ?? '']), rule)
  })
  return [...rules.values()]
}

function readRule (item: unknown, index: number): PermissionRule {
  if (!isObject(item)) throw invalid(`deny_rules[${index}] is an object`)
  const { tool_name: name, rule_content: content, behavior, source } = item
  if (typeof name !== 'string' || name.trim() === '') throw invalid(`deny_rules[${index}].tool_name is required`)
  if (typeof behavior !== 'string' || behavior.trim().toLowerCase() !== 'deny') throw invalid(`deny_rules[${index}].behavior is DENY`)
  if (content !== undefined && content !== null && typeof content !== 'string') throw invalid(`deny_rules[${index}].rule_content is a text`)
  return {
    tool_name: name,
    ...typeof content === 'string' && content !== '' && { rule_content: content },
    behavior: 'deny',
    source: typeof source === 'string' && source !== '' ? source : 'parent'
  }
}

function invalid (message: string): TaskError {
  return new TaskError('invalid_deny_rules', message)
}
