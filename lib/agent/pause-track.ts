import type { CallTrack } from './call-track.ts'
import type { AgentEventInitOf } from './events.ts'
import type { MessageBuilder } from './message-builder.ts'
import type { Outlet } from './open-item.ts'
import { type Pending, pendingId } from './pending.ts'

type Require = AgentEventInitOf<'REQUIRE_USER_CONFIRM' | 'REQUIRE_EXTERNAL_EXECUTION' | 'REQUIRE_INPUT'>

/** What one source waits for (agent-events 9.3, invariant 7). */
export class PauseTrack {
  readonly #outlet: Outlet
  readonly #calls: CallTrack
  readonly #message: MessageBuilder | undefined
  readonly #pending = new Map<string, Pending>()

  constructor (outlet: Outlet, calls: CallTrack, message: MessageBuilder | undefined) {
    this.#outlet = outlet
    this.#calls = calls
    this.#message = message
  }

  /** Open requests, in the order in which they were made. */
  get pending (): readonly Pending[] {
    return [...this.#pending.values()]
  }

  /** Tells what of a pause is new. */
  require (event: Require, replyId: string): void {
    switch (event.type) {
      case 'REQUIRE_INPUT': {
        const requests = event.requests.filter((request) => this.#add({ kind: 'input', replyId, request }))
        return requests.length === 0 ? this.#dropped(event) : this.#outlet.send({ ...event, replyId, requests })
      }
      case 'REQUIRE_USER_CONFIRM': case 'REQUIRE_EXTERNAL_EXECUTION': {
        const kind = event.type === 'REQUIRE_USER_CONFIRM' ? 'confirm' : 'external'
        const state = kind === 'confirm' ? 'asking' : 'pending'
        const toolCalls = event.toolCalls.flatMap((block) => {
          if (this.#pending.has(block.id)) return []
          const toolCall = { ...this.#calls.complete(block, replyId), state: block.state ?? state }
          this.#add({ kind, replyId, toolCall })
          return [toolCall]
        })
        return toolCalls.length === 0 ? this.#dropped(event) : this.#outlet.send({ ...event, replyId, toolCalls })
      }
    }
  }

  /** The request with this id waits no more. */
  answer (id: string): void {
    this.#pending.delete(id)
    this.#message?.ask(id, false)
  }

  #add (pending: Pending): boolean {
    const id = pendingId(pending)
    if (this.#pending.has(id)) return false
    this.#pending.set(id, pending)
    if (pending.kind === 'confirm') this.#message?.ask(id, true)
    return true
  }

  #dropped ({ type }: Require): void {
    this.#outlet.repair('dropped', 'empty', type)
  }
}
