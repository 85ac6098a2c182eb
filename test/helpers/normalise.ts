// Runs what an agent yields through a normaliser, and gives short events that a test can compare whole.
import { type AgentEvent, Normaliser, type NormaliserOptions, type Repair, type StreamEnd } from '../../lib/agent/index.ts'
import { findViolations } from './well-formed.ts'

export interface Normalised {
  /** Events without ids, times, and the reply of the run. */
  readonly events: readonly Record<string, unknown>[]
  readonly raw: readonly AgentEvent[]
  readonly repairs: readonly string[]
  readonly normaliser: Normaliser
}

/** Pushes all, ends, and fails if the outcome is not well formed. */
export function normalise (yielded: readonly unknown[], end: StreamEnd['kind'] = 'returned', options: Partial<NormaliserOptions> = {}): Normalised {
  const raw: AgentEvent[] = []
  const repairs: string[] = []
  const normaliser = new Normaliser({
    agentName: 'agent', sessionId: 'session', onRepair: (repair) => { repairs.push(line(repair)) }, ...options
  })
  const emit = (event: AgentEvent): void => { raw.push(event) }
  for (const event of yielded) normaliser.push(event, emit)
  normaliser.end({ kind: end }, emit)
  const violations = findViolations(raw, { end: end === 'failed' ? 'failed' : 'complete', ...options.knownCalls && { knownCalls: options.knownCalls } })
  if (violations.length > 0) throw new Error(violations.join('\n'))
  return { events: raw.map(short), raw, repairs, normaliser }
}

/** One line an event: `TEXT_BLOCK_DELTA r/text "hi"`, children indented by their path. */
export function lines (events: readonly Record<string, unknown>[]): string[] {
  return events.map((event) => {
    const key = event.toolCallId ?? event.blockId
    const parts = [event.source === undefined ? '' : `${String(event.source)}:`, event.type, event.replyId === undefined && key === undefined ? '' : `${String(event.replyId ?? '')}${key === undefined ? '' : `/${String(key)}`}`,
      event.delta === undefined ? '' : JSON.stringify(event.delta), event.state ?? '', event.type === 'AGENT_END' ? event.reason : '']
    return parts.filter((part) => part !== '' && part !== undefined).join(' ')
  })
}

function short (event: AgentEvent, _: number, all: readonly AgentEvent[]): Record<string, unknown> {
  const { id, createdAt, ...rest } = event
  const start = all.find((other) => other.type === 'AGENT_START' && other.source === event.source)
  const run = start?.type === 'AGENT_START' ? start.replyId : undefined
  if ('replyId' in rest && rest.replyId === run) delete rest.replyId
  return rest
}

function line ({ action, reason, type, source, key }: Repair): string {
  return [source === undefined ? '' : `${source}:`, action, reason, type, key].filter((part) => part !== undefined && part !== '').join(' ')
}
