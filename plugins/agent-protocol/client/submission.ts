import { createHash } from 'node:crypto'
import { type AgentInput, type JsonObject, type RuntimeContext, textOf } from '../../../lib/agent/index.ts'
import { attributesOf } from './attributes.ts'
import { type ResolvedOptions } from './options.ts'

/** What a task is made of. */
export interface Submission {
  readonly taskId: string
  readonly body: JsonObject
}

type Context = Pick<RuntimeContext, 'sessionId' | 'userId' | 'runId' | 'denyRules' | 'attributes' | 'get'>

/**
 * The task of a run, the same for the same run and input wherever it is asked for: who asks again attaches to it.
 * `generation` counts tasks that were cancelled before.
 * @throws AgentError `invalid_attributes`
 */
export function submissionOf (text: string, context: Context, options: ResolvedOptions, generation: number): Submission {
  const taskId = `${taskPrefix(context, options)}${digest([context.runId, text], 20)}${generation === 1 ? '' : `-${generation}`}`
  const { agentId, detail, stream, sessionMode } = options
  const attributes = attributesOf(options.attributes, context)
  const body = {
    task_id: taskId,
    ...agentId !== undefined && { agent_id: agentId },
    input: text,
    context: {
      ...context.userId !== undefined && { user_id: context.userId },
      parent_session_id: context.sessionId,
      ...sessionMode === 'stable' && { session_id: sessionId(context, options) },
      stream,
      detail: stream ? detail : 'status',
      ...context.denyRules.length > 0 && {
        // As the reference writes it: an upper-case name.
        deny_rules: context.denyRules.map((rule) => ({ ...rule, behavior: rule.behavior.toUpperCase(), source: rule.source ?? 'parent' }))
      },
      ...Object.keys(attributes).length > 0 && { attributes }
    }
  }
  return { taskId, body: body as unknown as JsonObject } // rules and attributes are JSON
}

/** What the ids of all tasks of one session begin with, so that another session's can be told from them. */
export function taskPrefix ({ userId, sessionId }: Pick<Context, 'userId' | 'sessionId'>, { agentId, name }: Pick<ResolvedOptions, 'agentId' | 'name'>): string {
  // Not of the address: a service that has moved has its tasks with it.
  return `task_${digest([agentId ?? name, userId ?? null, sessionId], 16)}_`
}

/** What is new in an input, as text: a task takes nothing else. */
export function textOfInput ({ messages, history }: AgentInput): string {
  // Of a whole conversation only what came after the last answer is new.
  const from = history === 'replace' ? messages.findLastIndex(({ role }) => role === 'ASSISTANT' || role === 'TOOL') + 1 : 0
  return messages.slice(from).filter(({ role }) => role !== 'ASSISTANT').map(textOf).filter((text) => text !== '').join('\n')
}

/** A conversation over there is one of this agent, user and session. */
function sessionId (context: Context, options: ResolvedOptions): string {
  return `session_${digest([options.agentId ?? options.name, context.userId ?? null, context.sessionId], 32)}`
}

function digest (values: readonly unknown[], length: number): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, length)
}
