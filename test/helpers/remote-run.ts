// Runs of a remote agent, read whole.
import {
  type AgentEvent, type AgentInput, createRuntimeContext, type Decision, type Msg, Normaliser, type Pending, runAgent, type Agent, type RuntimeContext, type RuntimeContextInit
} from '../../lib/agent/index.ts'
import { remoteAgent, type RemoteAgent, type RemoteAgentOptions } from '../../plugins/agent-protocol/client/index.ts'

/** Short waits, so that a test of many failures is over soon. */
export const quick = {
  retryBaseMs: 5, retryMaxMs: 20, pollMs: 5, pollMaxMs: 20, silenceMs: 400, idleMs: 3_000, callTimeoutMs: 3_000, cancelTimeoutMs: 1_000
} as const

export function remote (url: string, options: Partial<RemoteAgentOptions> = {}): RemoteAgent {
  return remoteAgent({ url, name: 'worker', ...quick, ...options })
}

/** What a run came to. */
export interface Outcome {
  readonly events: readonly AgentEvent[]
  readonly pending: readonly Pending[]
  readonly message: Msg
  /** Code of what the run failed with. */
  readonly code: string | undefined
}

/** A user's words, or decisions about what was asked. */
export function inputOf (what: string | readonly Decision[]): AgentInput {
  if (typeof what !== 'string') return { messages: [], history: 'append', resume: [...what] }
  return { messages: [{ id: 'u1', role: 'USER', content: [{ type: 'text', text: what }] }], history: 'append' }
}

/** Runs an agent to its end, its pause or its failure. */
export async function run (agent: Agent, what: string | readonly Decision[], init: Partial<RuntimeContextInit> | RuntimeContext = {}): Promise<Outcome> {
  return await watch(agent, what, init).outcome
}

/** A run that is looked at while it goes on. */
export interface Watched {
  readonly outcome: Promise<Outcome>
  /** Resolves when the run has told an event with this line. */
  told (line: string): Promise<void>
}

/** Starts a run like {@link run}. */
export function watch (agent: Agent, what: string | readonly Decision[], init: Partial<RuntimeContextInit> | RuntimeContext = {}): Watched {
  const context = 'permissions' in init ? init : createRuntimeContext({ sessionId: 's', runId: 'r', ...init })
  const watcher = new Normaliser({ agentName: agent.name, sessionId: context.sessionId })
  const events: AgentEvent[] = []
  const waiting = new Set<() => void>()
  const read = async (): Promise<Outcome> => {
    let code: string | undefined
    // The waits of a client keep no process alive.
    const alive = setInterval(() => {}, 60_000)
    try {
      for await (const event of runAgent(agent, inputOf(what), context)) {
        watcher.push(event, () => {})
        events.push(event)
        for (const look of waiting) look()
      }
    } catch (error) {
      code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    } finally {
      clearInterval(alive)
    }
    return { events, pending: watcher.pending, message: watcher.message, code }
  }
  return {
    outcome: read(),
    told: (line) => new Promise((resolve) => {
      const look = (): void => {
        if (!lines(events).includes(line)) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  }
}

/** One line an event: type, path, and what it says. */
export function lines (events: readonly AgentEvent[]): string[] {
  return events.map((event) => {
    const parts: unknown[] = [event.source ?? '', event.type]
    if ('delta' in event) parts.push(event.delta)
    if ('toolCallId' in event) parts.push(event.toolCallId)
    if ('state' in event) parts.push(event.state)
    if ('toolCalls' in event) parts.push(event.toolCalls.map(({ id, name, input }) => `${id} ${name} ${JSON.stringify(input)}`).join())
    if ('requests' in event) parts.push(event.requests.map(({ id }) => id).join())
    if (event.type === 'AGENT_END') parts.push(event.reason)
    if (event.type === 'CUSTOM') parts.push(event.name, JSON.stringify({ ...event.value, taskId: undefined }))
    return parts.filter((part) => part !== '').join(' ')
  })
}

/** The decision about each question, with the call that was stored. */
export function decide (pending: readonly Pending[], approved: boolean, more: { readonly reason?: string, readonly editedArgs?: Record<string, string> } = {}): Decision[] {
  return pending.flatMap((item): Decision[] => item.kind === 'input'
    ? [{ kind: 'input', requestId: item.request.id, status: 'resolved', payload: 'yes' }]
    : [{ kind: 'confirm', toolCallId: item.toolCall.id, approved, toolCall: item.toolCall, ...more }])
}
