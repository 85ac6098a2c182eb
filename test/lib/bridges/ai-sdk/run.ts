// Runs an agent and gives its events in lines that a test can compare whole.
import { type Agent, type AgentEvent, type AgentInput, createRuntimeContext, type Decision, type Msg, newId, type Pending, pendingOf, type PermissionRule, resolveDecisions, runAgent, type RuntimeContextInit } from '../../../../lib/agent/index.ts'
import { findViolations } from '../../../helpers/well-formed.ts'

export function user (text: string): Msg {
  return { id: newId(), role: 'USER', content: [{ type: 'text', text }] }
}

export interface Ran {
  readonly events: AgentEvent[]
  readonly pending: readonly Pending[]
  /** What of the conversation a client keeps. */
  readonly message: Msg | undefined
  readonly error: unknown
}

export interface RunInit extends Partial<Omit<AgentInput, 'messages'>> {
  readonly messages?: readonly Msg[]
  readonly signal?: AbortSignal
  readonly denyRules?: readonly PermissionRule[]
  readonly knownCalls?: ReadonlySet<string>
  readonly context?: never
  readonly onEvent?: (event: AgentEvent) => void
}

/** Runs once; fails when the stream is not well formed. */
export async function run (agent: Agent, init: RunInit | string = {}): Promise<Ran> {
  const { messages = [], signal, denyRules, knownCalls, onEvent, context, ...input } = typeof init === 'string' ? { messages: [user(init)] } : init
  const contextInit: RuntimeContextInit = { sessionId: 's1', signal, denyRules }
  const events: AgentEvent[] = []
  let error: unknown
  try {
    const stream = runAgent(agent, { history: 'replace', ...input, messages: [...messages] }, createRuntimeContext(contextInit), knownCalls === undefined ? {} : { knownCalls })
    for await (const event of stream) {
      events.push(event)
      onEvent?.(event)
    }
  } catch (thrown) {
    error = thrown
  }
  const violations = findViolations(events, { end: error === undefined ? 'complete' : 'failed', ...knownCalls && { knownCalls } })
  if (violations.length > 0) throw new Error(`${violations.join('\n')}\n${lines(events).join('\n')}`)
  const result = events.find((event) => event.type === 'AGENT_RESULT')
  return { events, pending: pendingOf(events), message: result?.result, error }
}

/** Answers what is pending, as an adapter does. */
export function decide (pending: readonly Pending[], ...decisions: readonly object[]): Decision[] {
  const resolved = resolveDecisions(pending, decisions)
  if (resolved.kind === 'rejected') throw new Error(JSON.stringify(resolved.problems))
  return [...resolved.decisions]
}

export function known (pending: readonly Pending[]): Set<string> {
  return new Set(pending.flatMap((item) => item.kind === 'input' ? [] : [item.toolCall.id]))
}

/** `TEXT_BLOCK_DELTA 1/t0 "hi"`: replies are numbered in the order in which they come, the run's own is left out. */
export function lines (events: readonly AgentEvent[]): string[] {
  const replies = new Map<string, number>()
  const own = events.find((event) => event.type === 'AGENT_START')?.replyId
  return events.flatMap((event) => {
    const fields = event as AgentEvent & Record<string, unknown>
    if (event.type === 'AGENT_START' || event.type === 'AGENT_RESULT') return []
    const { replyId } = fields
    if (typeof replyId === 'string' && !replies.has(replyId) && replyId !== own) replies.set(replyId, replies.size + 1)
    const reply = replyId === own || replyId === undefined ? '' : String(replies.get(replyId as string))
    const key = fields.toolCallId ?? fields.blockId
    const words = [
      fields.source === undefined ? undefined : `${String(fields.source)}:`,
      event.type,
      `${reply}${key === undefined ? '' : `/${String(key)}`}` || undefined,
      fields.delta === undefined ? undefined : JSON.stringify(fields.delta),
      fields.state, fields.reason, fields.executor, fields.finishReason,
      fields.usage === undefined ? undefined : JSON.stringify(fields.usage),
      fields.metadata === undefined ? undefined : JSON.stringify(fields.metadata),
      fields.value === undefined ? undefined : JSON.stringify(fields.value),
      event.type === 'REQUIRE_USER_CONFIRM' || event.type === 'REQUIRE_EXTERNAL_EXECUTION'
        ? event.toolCalls.map(({ id, name, input, metadata: { executor, ...metadata } = {}, state }) => `${id} ${name} ${JSON.stringify(input)} ${String(state)}${Object.keys(metadata).length === 0 ? '' : ` ${JSON.stringify(metadata)}`}`).join('; ')
        : undefined
    ]
    return [words.filter((word) => word !== undefined).join(' ')]
  })
}
