import { AgentError, type AgentEventInit, type AgentEventInitOf, newId } from '../../../lib/agent/index.ts'
import { requestsOf } from './relay.ts'
import { type TaskEnd, type TaskUpdate } from './task-update.ts'

/** Text that is remembered to see what a gap has swallowed; longer ones are told by the result alone. */
const MAX_TEXT = 1_048_576

/** What a {@link Projection} is made for. */
export interface ProjectionOptions {
  readonly taskId: string
  readonly agentName: string
  readonly parentSessionId: string
  /** The service was asked for the text while it comes. */
  readonly isTextTold: boolean
}

/** A task's updates as the events of one execution of a local agent. Pure. */
export class Projection {
  readonly #options: ProjectionOptions
  #hasStarted = false
  #hasGap = false
  #result: AgentEventInitOf<'AGENT_RESULT'> | undefined
  #end: AgentEventInitOf<'AGENT_END'> | undefined
  /** The root's text of this execution so far; undefined when there is too much of it. */
  #text: string | undefined = ''

  constructor (options: ProjectionOptions) {
    this.#options = options
  }

  /** The events that an update becomes. @throws AgentError for a task that has failed */
  take (update: TaskUpdate): AgentEventInit[] {
    switch (update.kind) {
      case 'event': return this.#take(update.event)
      case 'waiting': return requestsOf(update.pending, { taskId: this.#options.taskId, seq: update.seq })
      case 'gap': {
        this.#hasGap = true
        const { reason, missed } = update
        return [{ type: 'CUSTOM', name: 'stream_gap', value: { taskId: this.#options.taskId, reason, ...missed !== undefined && { missed } } }]
      }
      case 'end': return this.#finish(update)
    }
  }

  #take (event: AgentEventInit): AgentEventInit[] {
    if (event.source === undefined) {
      switch (event.type) {
        // A task may take several executions where a local agent takes one: one start, one result, one end.
        case 'AGENT_START':
          this.#result = this.#end = undefined
          this.#text = ''
          if (this.#hasStarted) return []
          this.#hasStarted = true
          break
        case 'AGENT_RESULT':
          this.#result = event
          return []
        case 'AGENT_END':
          this.#end = event
          return []
        case 'TEXT_BLOCK_DELTA':
          if (this.#text !== undefined) this.#text = this.#text.length + event.delta.length > MAX_TEXT ? undefined : this.#text + event.delta
      }
    }
    return [{ ...event, metadata: { ...event.metadata, parentSessionId: this.#options.parentSessionId } }]
  }

  #finish (end: TaskEnd): AgentEventInit[] {
    switch (end.status) {
      case 'success': return this.#succeed(end.result)
      case 'cancelled': throw new AgentError({ code: 'remote_cancelled', message: `The task of the remote agent ${this.#options.agentName} was cancelled.`, expose: true })
      // The service has decided already what its clients may read.
      case 'error': throw new AgentError({ code: end.code ?? 'remote_failed', message: end.error, expose: true })
    }
  }

  #succeed (text: string | undefined): AgentEventInit[] {
    const events: AgentEventInit[] = []
    const { taskId, parentSessionId, isTextTold } = this.#options
    // What was not streamed, or was lost, is told where it fits behind what was told.
    const told = this.#hasGap || !isTextTold ? this.#text : undefined
    if (text !== undefined && told !== undefined && text.startsWith(told) && text.length > told.length) {
      events.push({ type: 'TEXT_BLOCK_DELTA', delta: text.slice(told.length), metadata: { taskId, parentSessionId } })
    }
    const result = this.#result ?? (text === undefined ? undefined : this.#message(text))
    if (result !== undefined) events.push(result)
    if (this.#end !== undefined) events.push(this.#end)
    return events
  }

  #message (text: string): AgentEventInitOf<'AGENT_RESULT'> {
    return { type: 'AGENT_RESULT', result: { id: newId(), name: this.#options.agentName, role: 'ASSISTANT', content: [{ type: 'text', text }] } }
  }
}
