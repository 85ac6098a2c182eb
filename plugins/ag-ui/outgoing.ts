import { type AgentEvent, isObject, toJson } from '../../lib/agent/index.ts'
import { conform } from './conform.ts'
import { AgUiEvent } from './event-schemas.ts'
import { type EventEnricher, type StreamContext } from './extension.ts'
import { type OrderGuard } from './guard.ts'
import { type DeltaBlock, deltaEvent, type EventSink } from './sink.ts'

/** The framework's own events: extensions may change them, but neither make nor remove them. */
const BOUNDARIES: ReadonlySet<string> = new Set(['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'])
const SCHEMAS = new Map(AgUiEvent.anyOf.map((schema) => [schema.properties.type.const, schema]))

/**
 * The way of mapped events to the guard. Without extensions they go straight on; with enrichers those of one agent event are collected,
 * shown to each enricher and checked, because what comes back from foreign code may be anything.
 */
export class Outgoing implements EventSink {
  readonly #guard: OrderGuard
  readonly #enrichers: readonly EventEnricher[]
  readonly #foreign: boolean
  #batch: AgUiEvent[] = []

  /** @param foreign whether converters make events too: then deltas are checked like everything else */
  constructor (guard: OrderGuard, enrichers: readonly EventEnricher[], foreign: boolean) {
    this.#guard = guard
    this.#enrichers = enrichers
    this.#foreign = foreign
  }

  event (event: AgUiEvent): void {
    if (this.#enrichers.length > 0) this.#batch.push(event)
    else this.#guard.event(event)
  }

  delta (block: DeltaBlock, delta: string): void {
    if (this.#enrichers.length > 0) this.#batch.push(deltaEvent(block, delta))
    else if (this.#foreign) this.#guard.event(deltaEvent(block, delta))
    else this.#guard.delta(block, delta)
  }

  /** Takes an event that a converter made. @throws TypeError where it is no event of AG-UI, or the framework's to make */
  foreign (event: AgUiEvent): void {
    if (isObject(event) && BOUNDARIES.has(event.type)) throw new TypeError(`A converter made ${event.type}, which is the framework's to make`)
    this.event(checked(event))
  }

  /** Sends what was collected for one agent event; `source` is null for what the framework sends by itself. */
  flush (source: AgentEvent | null, context: StreamContext): void {
    if (this.#batch.length === 0) return
    const collected = this.#batch
    this.#batch = []
    let events: readonly AgUiEvent[] = collected
    for (const enrich of this.#enrichers) events = enrich(source, events, context)
    for (const event of withBoundaries(collected, events.map(checked))) this.#guard.event(event)
  }

  /** Forgets what was collected and lets everything that follows pass the enrichers by: one of them threw. */
  abandon (): EventSink {
    this.#batch = []
    return this.#guard
  }
}

/** An event from foreign code as a plain copy in the shape of its type: nulls and unknown members are gone, values are JSON. */
function checked (event: unknown): AgUiEvent {
  const schema = isObject(event) && typeof event['type'] === 'string' ? SCHEMAS.get(event['type'] as AgUiEvent['type']) : undefined
  if (schema === undefined) throw new TypeError('An extension made something that is no AG-UI event')
  const { value, issues } = conform(schema, toJson(event), Number.POSITIVE_INFINITY)
  const issue = issues[0]
  if (issue !== undefined) throw new TypeError(`An extension made a wrong ${schema.properties.type.const}: ${issue.path}: ${issue.reason}`)
  return value as AgUiEvent // conform() reported no issue, so it has that shape
}

/** Keeps the boundary events in their places: enrichers may change them, and may put nothing before the start or after the end. */
function withBoundaries (before: readonly AgUiEvent[], after: readonly AgUiEvent[]): readonly AgUiEvent[] {
  const own = before.filter(({ type }) => BOUNDARIES.has(type)).map((event) => after.find(({ type }) => type === event.type) ?? event)
  const between = after.filter(({ type }) => !BOUNDARIES.has(type))
  const start = own.filter(({ type }) => type === 'RUN_STARTED')
  const end = own.filter(({ type }) => type !== 'RUN_STARTED')
  return [...start, ...between, ...end]
}
