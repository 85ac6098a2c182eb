import { type AgUiEvent } from './event-schemas.ts'
import { PROTOCOL_VERSION } from './lifecycle.ts'
import { type DeltaBlock, type EventSink } from './sink.ts'

/** Reports an event that was mended or left out; `rule` says which rule it would have broken. */
export type OnViolation = (type: AgUiEvent['type'], rule: string) => void

/** What the guard knows of its run. */
export interface GuardInit {
  readonly threadId: string
  readonly runId: string
  /** Lets one RUN_FINISHED follow a RUN_ERROR, which every official client refuses. */
  readonly finishedAfterError: boolean
  readonly onViolation: OnViolation
}

/** Who an event belongs to: a subagent run, or undefined for the run itself. */
type Owner = string | undefined
type Attributed = Extract<AgUiEvent, { subagentRunId?: string }>

/**
 * Keeps a run's events in an order every official client accepts (section 5): the start first, one terminal and nothing after it, no
 * piece of what is not open, nothing left open at the end, each id with one owner. What would break a rule is mended where there
 * is one way to mend it, else left out, and reported. Deltas of blocks that the mapping itself holds open pass unseen.
 */
export class OrderGuard implements EventSink {
  readonly #next: EventSink
  readonly #init: GuardInit
  #started = false
  #ended: 'RUN_FINISHED' | 'RUN_ERROR' | undefined
  readonly #text = new Set<string>()
  readonly #reasoning = new Set<string>()
  readonly #spans = new Set<string>()
  readonly #calls = new Set<string>()
  readonly #steps = new Map<string, { readonly name: string, readonly owner: Owner }>()
  /** Subagent runs: true while active. */
  readonly #subagents = new Map<string, boolean>()
  /** Owner of each id, by kind: whoever came first, until a snapshot or a result says it anew. */
  readonly #owners = { message: new Map<string, Owner>(), call: new Map<string, Owner>(), reasoning: new Map<string, Owner>(), activity: new Map<string, Owner>() }

  constructor (next: EventSink, init: GuardInit) {
    this.#next = next
    this.#init = init
  }

  get isStarted (): boolean {
    return this.#started
  }

  get isEnded (): boolean {
    return this.#ended !== undefined
  }

  delta (block: DeltaBlock, delta: string): void {
    if (this.#ended === undefined) this.#next.delta(block, delta)
  }

  event (event: AgUiEvent): void {
    if (this.#ended !== undefined && !(event.type === 'RUN_FINISHED' && this.#ended === 'RUN_ERROR' && this.#init.finishedAfterError)) {
      return this.#refuse(event, 'nothing follows the terminal')
    }
    if (!this.#started && event.type !== 'RUN_STARTED' && event.type !== 'RUN_ERROR') {
      this.#init.onViolation(event.type, 'RUN_STARTED comes first')
      this.event({ type: 'RUN_STARTED', threadId: this.#init.threadId, runId: this.#init.runId, protocolVersion: PROTOCOL_VERSION })
    }
    const allowed = this.#check(event)
    if (allowed !== undefined) this.#next.event(allowed)
  }

  /** Events that end what is open, in the order of section 9.6. They are to be sent through this guard, which then knows them ended. */
  closing (failed: boolean): AgUiEvent[] {
    const { message, reasoning, call } = this.#owners
    const tag = (owner: Owner): { subagentRunId?: string } => owner === undefined ? {} : { subagentRunId: owner }
    return [
      ...Array.from(this.#text, (messageId): AgUiEvent => ({ type: 'TEXT_MESSAGE_END', messageId, ...tag(message.get(messageId)) })),
      ...Array.from(this.#reasoning, (messageId): AgUiEvent => ({ type: 'REASONING_MESSAGE_END', messageId, ...tag(reasoning.get(messageId)) })),
      ...Array.from(this.#spans, (messageId): AgUiEvent => ({ type: 'REASONING_END', messageId, ...tag(reasoning.get(messageId)) })),
      ...Array.from(this.#calls, (toolCallId): AgUiEvent => ({ type: 'TOOL_CALL_END', toolCallId, ...tag(call.get(toolCallId)) })),
      ...Array.from(this.#steps.values(), ({ name, owner }): AgUiEvent => ({ type: 'STEP_FINISHED', stepName: name, ...tag(owner) })),
      // The one started last is the innermost.
      ...[...this.#subagents].reverse().flatMap(([subagentRunId, active]): AgUiEvent[] => active
        ? [failed ? { type: 'SUBAGENT_ERROR', subagentRunId, message: 'The run failed.' } : { type: 'SUBAGENT_FINISHED', subagentRunId }]
        : [])
    ]
  }

  #check (event: AgUiEvent): AgUiEvent | undefined {
    switch (event.type) {
      case 'RUN_STARTED':
        if (this.#started) return this.#refuse(event, 'one RUN_STARTED a run')
        this.#started = true
        this.#seed(event.input?.messages ?? [])
        return this.#sameRun(event)
      case 'RUN_FINISHED':
        if (this.#ended === undefined) this.#closeAll(event)
        this.#ended = 'RUN_FINISHED'
        return this.#outcome(this.#sameRun(event))
      case 'RUN_ERROR':
        this.#ended = 'RUN_ERROR'
        return event
      case 'TEXT_MESSAGE_START': return this.#open(event, event.messageId, this.#text, this.#owners.message)
      case 'TEXT_MESSAGE_CONTENT': return this.#continue(event, event.messageId, this.#text, this.#owners.message)
      case 'TEXT_MESSAGE_END': return this.#end(event, event.messageId, this.#text, this.#owners.message)
      case 'REASONING_START': return this.#open(event, event.messageId, this.#spans, this.#owners.reasoning)
      case 'REASONING_END': return this.#end(event, event.messageId, this.#spans, this.#owners.reasoning)
      case 'REASONING_MESSAGE_START': return this.#open(event, event.messageId, this.#reasoning, this.#owners.reasoning)
      case 'REASONING_MESSAGE_CONTENT': return this.#continue(event, event.messageId, this.#reasoning, this.#owners.reasoning)
      case 'REASONING_MESSAGE_END': return this.#end(event, event.messageId, this.#reasoning, this.#owners.reasoning)
      case 'TOOL_CALL_START': return this.#openCall(event)
      case 'TOOL_CALL_ARGS': return this.#continue(event, event.toolCallId, this.#calls, this.#owners.call)
      case 'TOOL_CALL_END': return this.#end(event, event.toolCallId, this.#calls, this.#owners.call)
      case 'TOOL_CALL_RESULT':
        this.#owners.message.set(event.messageId, event.subagentRunId)
        return event
      case 'ACTIVITY_SNAPSHOT':
        if (event.replace !== false || !this.#owners.activity.has(event.messageId)) this.#owners.activity.set(event.messageId, event.subagentRunId)
        return event
      case 'ACTIVITY_DELTA':
        if (!this.#owners.activity.has(event.messageId)) return this.#refuse(event, 'an activity begins with its snapshot')
        return this.#owned(event, this.#owners.activity.get(event.messageId))
      case 'REASONING_ENCRYPTED_VALUE': {
        const { call, message, reasoning } = this.#owners
        const owners = event.subtype === 'tool-call' ? call : message.has(event.entityId) ? message : reasoning
        return owners.has(event.entityId) ? this.#owned(event, owners.get(event.entityId)) : event
      }
      case 'MESSAGES_SNAPSHOT':
        this.#seed(event.messages)
        return event
      case 'STEP_STARTED': {
        const key = stepKey(event.stepName, event.subagentRunId)
        if (this.#steps.has(key)) return this.#refuse(event, 'a step starts once')
        this.#steps.set(key, { name: event.stepName, owner: event.subagentRunId })
        return event
      }
      case 'STEP_FINISHED':
        return this.#steps.delete(stepKey(event.stepName, event.subagentRunId)) ? event : this.#refuse(event, 'a step ends by whom and after it was started')
      case 'SUBAGENT_STARTED':
        if (this.#subagents.has(event.subagentRunId)) return this.#refuse(event, 'a subagent run starts once')
        return this.#startSubagent(event)
      case 'SUBAGENT_FINISHED':
      case 'SUBAGENT_ERROR':
        if (this.#subagents.get(event.subagentRunId) !== true) return this.#refuse(event, 'a subagent run ends once, after its start')
        this.#subagents.set(event.subagentRunId, false)
        return event
      case 'TEXT_MESSAGE_CHUNK':
      case 'REASONING_MESSAGE_CHUNK':
      case 'TOOL_CALL_CHUNK':
        // A chunk opens and ends messages inside the client, out of sight from here.
        return this.#refuse(event, 'start, content and end instead of chunks')
      case 'STATE_SNAPSHOT':
      case 'STATE_DELTA':
      case 'RAW':
      case 'CUSTOM':
        return event
    }
  }

  #open<Event extends Attributed> (event: Event, id: string, open: Set<string>, owners: Map<string, Owner>): Event | undefined {
    if (open.has(id)) return this.#refuse(event, 'what is open is not opened again')
    open.add(id)
    if (owners.has(id)) return this.#owned(event, owners.get(id))
    owners.set(id, event.subagentRunId)
    return event
  }

  #openCall (event: Extract<AgUiEvent, { type: 'TOOL_CALL_START' }>): AgUiEvent | undefined {
    const { parentMessageId, toolCallId } = event
    const { message, call } = this.#owners
    if (parentMessageId === undefined || !message.has(parentMessageId)) return this.#open(event, toolCallId, this.#calls, call)
    // A call lives inside its message and belongs to whom the message belongs; the id of an earlier one has its owner already.
    const owner = message.get(parentMessageId)
    const isForeign = call.has(toolCallId) && call.get(toolCallId) !== owner
    const start = isForeign ? this.#mend(event, 'a call stays with its owner', ({ parentMessageId: _, ...rest }) => rest) : this.#owned(event, owner)
    return this.#open(start, toolCallId, this.#calls, call)
  }

  #continue<Event extends Attributed> (event: Event, id: string, open: Set<string>, owners: Map<string, Owner>): Event | undefined {
    return open.has(id) ? this.#owned(event, owners.get(id)) : this.#refuse(event, 'only what is open goes on')
  }

  #end<Event extends Attributed> (event: Event, id: string, open: Set<string>, owners: Map<string, Owner>): Event | undefined {
    return open.delete(id) ? this.#owned(event, owners.get(id)) : this.#refuse(event, 'only what is open ends')
  }

  /** A tag may be absent; one that is there names the owner. */
  #owned<Event extends Attributed> (event: Event, owner: Owner): Event {
    if (event.subagentRunId === undefined || event.subagentRunId === owner) return event
    return this.#mend(event, 'the owner stays the same', ({ subagentRunId: _, ...rest }) => owner === undefined ? rest : { ...rest, subagentRunId: owner })
  }

  #startSubagent (event: Extract<AgUiEvent, { type: 'SUBAGENT_STARTED' }>): AgUiEvent {
    const isKnown = event.parentSubagentRunId === undefined || this.#subagents.has(event.parentSubagentRunId)
    this.#subagents.set(event.subagentRunId, true)
    return isKnown ? event : this.#mend(event, 'the parent subagent run is known', ({ parentSubagentRunId: _, ...rest }) => rest)
  }

  #closeAll (event: AgUiEvent): void {
    const closing = this.closing(false)
    if (closing.length === 0) return
    this.#init.onViolation(event.type, 'nothing is open at the end')
    for (const end of closing) this.event(end)
  }

  #sameRun<Event extends Extract<AgUiEvent, { threadId: string }>> (event: Event): Event {
    const { threadId, runId } = this.#init
    return event.threadId === threadId && event.runId === runId ? event : this.#mend(event, 'the boundaries name the run', (rest) => ({ ...rest, threadId, runId }))
  }

  #outcome (event: Extract<AgUiEvent, { type: 'RUN_FINISHED' }>): AgUiEvent {
    const { outcome } = event
    if (outcome?.type !== 'interrupt') return event
    const unique = outcome.interrupts.filter(({ id }, index) => outcome.interrupts.findIndex((other) => other.id === id) === index)
    if (unique.length === outcome.interrupts.length && unique.length > 0) return event
    return this.#mend(event, 'interrupts have ids of their own, and there is at least one', ({ outcome: _, ...rest }) =>
      unique.length === 0 ? rest : { ...rest, outcome: { type: 'interrupt', interrupts: unique } })
  }

  /** Messages a client knows from elsewhere have owners too. */
  #seed (messages: readonly { readonly id: string, readonly role: string, readonly subagentRunId?: string, readonly toolCalls?: readonly { readonly id: string }[] }[]): void {
    for (const { id, role, subagentRunId, toolCalls = [] } of messages) {
      const kind = role === 'reasoning' || role === 'activity' ? role : 'message'
      this.#owners[kind].set(id, subagentRunId)
      for (const call of toolCalls) this.#owners.call.set(call.id, subagentRunId)
    }
  }

  #mend<Event extends AgUiEvent> (event: Event, rule: string, how: (event: Event) => object): Event {
    this.#init.onViolation(event.type, rule)
    return how(event) as Event // each `how` only changes or drops an optional member, or rewrites an id
  }

  #refuse (event: AgUiEvent, rule: string): undefined {
    this.#init.onViolation(event.type, rule)
    return undefined
  }
}

function stepKey (name: string, owner: Owner): string {
  return JSON.stringify([name, owner ?? null])
}
