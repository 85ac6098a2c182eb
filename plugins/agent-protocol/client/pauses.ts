import { type AgentEventInit, type Pending, pendingId } from '../../../lib/agent/index.ts'

/**
 * What a task waits for. A service tells it in pieces (the reference asks twice, and before it can take an answer), so requests are
 * kept until the pause stands.
 */
export class Pauses {
  readonly #asked = new Map<string, Pending>()
  #isCommitted = false
  #hasEnded = false
  /** The pause that was told last. */
  #told: string | undefined

  /** Everything that a pause is told by has come, and its reader does not know of it. */
  get isReady (): boolean {
    return this.#isCommitted && this.#hasEnded && this.#told === undefined
  }

  /** Takes an event of the root; true when it is a request, which is told with the pause as a whole. */
  take (event: AgentEventInit): boolean {
    switch (event.type) {
      case 'REQUIRE_USER_CONFIRM': return this.#ask(event.toolCalls.map((toolCall) => ({ kind: 'confirm', replyId: event.replyId ?? '', toolCall })))
      case 'REQUIRE_EXTERNAL_EXECUTION': return this.#ask(event.toolCalls.map((toolCall) => ({ kind: 'external', replyId: event.replyId ?? '', toolCall })))
      case 'REQUIRE_INPUT': return this.#ask(event.requests.map((request) => ({ kind: 'input', replyId: event.replyId ?? '', request })))
      case 'AGENT_START':
        this.forget()
        return false
      case 'AGENT_END':
        this.#hasEnded = true
        return false
      default: return false
    }
  }

  /** The service has said that it waits: an answer would be taken. */
  commit (): void {
    this.#isCommitted = true
  }

  /** Whether this pause was told. */
  isTold (open: readonly Pending[]): boolean {
    return this.#told === keyOf(open)
  }

  /** The task goes on, whoever answered. */
  goOn (): void {
    this.#told = undefined
  }

  /** The pause was answered, or another execution has begun. */
  forget (): void {
    this.#asked.clear()
    this.#isCommitted = this.#hasEnded = false
    this.#told = undefined
  }

  /**
   * What waits according to the service, told as fully as the events did; undefined when it was told already.
   * @param open the requests of a snapshot
   */
  tell (open: readonly Pending[]): readonly Pending[] | undefined {
    if (this.isTold(open)) return undefined
    this.#told = keyOf(open)
    return open.map((item) => this.#asked.get(pendingId(item)) ?? item)
  }

  #ask (requests: readonly Pending[]): true {
    for (const request of requests) {
      const known = this.#asked.get(pendingId(request))
      // A repetition without what the first copy said (metadata, step) adds nothing.
      if (known === undefined) this.#asked.set(pendingId(request), request)
    }
    return true
  }
}

function keyOf (open: readonly Pending[]): string {
  return open.map(pendingId).sort().join('\n')
}
