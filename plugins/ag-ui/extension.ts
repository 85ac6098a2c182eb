import { type AgentEvent, type AgentEventType } from '../../lib/agent/index.ts'
import { type MappingConfig } from './config.ts'
import { type AgUiEvent } from './event-schemas.ts'
import { type Profile } from './input.ts'
import { type NormalisedInput } from './schemas.ts'

/** What a converter or enricher knows of its run. One per run: nothing in it outlives or crosses runs. */
export interface StreamContext {
  readonly threadId: string
  readonly runId: string
  /** The normalised request. */
  readonly input: NormalisedInput
  readonly profile: Profile
  readonly config: MappingConfig
  /** Tokens of the run so far, children included. */
  readonly usage: { readonly inputTokens: number, readonly outputTokens: number }
  /** Sends an event, in the order of the calls. RUN_STARTED and the terminal are the framework's alone and are refused. */
  emit (event: AgUiEvent): void
  /** Ends the text and reasoning messages that are open. */
  closeMessages (): void
  /** Ends the tool calls whose arguments are still being streamed. */
  closeToolCalls (): void
}

/** Turns agent events into AG-UI events in place of the built-in mapping, which sees those types no more (section 14). */
export interface EventConverter {
  /** Exact types it takes, also ones that are otherwise not sent at all. */
  readonly eventTypes: readonly AgentEventType[]
  /** Whether it takes the events of child agents too, before they become `subagent.*`. @default false */
  readonly handlesSubagent?: boolean
  /** Synchronous. What it throws ends the run with INTERNAL_ERROR. */
  convert (event: AgentEvent, context: StreamContext): void
}

/**
 * Looks over what one agent event became; the list it returns is sent instead. `source` is null for what the framework sends by
 * itself (start, closes, terminal). RUN_STARTED and the terminal may be changed but not removed.
 */
export type EventEnricher = (source: AgentEvent | null, events: readonly AgUiEvent[], context: StreamContext) => readonly AgUiEvent[]

/** Copies an event with base properties where it has none yet. @param timestamp milliseconds; fractions are cut off, as floats are fatal for 1.0 clients */
export function withBaseProperties<Event extends AgUiEvent> (event: Event, timestamp: number | undefined, rawEvent?: unknown): Event {
  return {
    ...event,
    ...event.timestamp === undefined && timestamp !== undefined && { timestamp: Math.trunc(timestamp) },
    ...event.rawEvent === undefined && rawEvent !== undefined && rawEvent !== null && { rawEvent }
  }
}

/** Fills missing timestamps and never touches `rawEvent`. @param now milliseconds since 1970 */
export function basePropertiesEnricher (now: () => number = Date.now): EventEnricher {
  return (_source, events) => events.map((event) => event.timestamp === undefined ? withBaseProperties(event, now()) : event)
}
