import type { Agent } from './agent.ts'
import { deriveContext, type RuntimeContext } from './context.ts'
import { AgentError, toAgentError } from './errors.ts'
import type { AgentEvent } from './events.ts'
import type { AgentInput } from './input.ts'
import { Normaliser } from './normaliser.ts'
import type { Repair } from './repair.ts'
import { RunInterrupted } from './run-interrupted.ts'

/** Options of {@link runAgent}. */
export interface RunAgentOptions {
  /** Tool calls that an earlier execution announced. @default none */
  readonly knownCalls?: ReadonlySet<string>
  /** Milliseconds that an aborted agent may take to settle before its iterator is abandoned. @default 5000 */
  readonly graceMs?: number
  readonly onRepair?: (repair: Repair) => void
}

/**
 * Runs an agent once and gives its events, repaired (agent-events 9.3).
 *
 * A {@link RunInterrupted} as abort reason ends the stream gracefully with AGENT_RESULT and AGENT_END; any other reason, and
 * whatever the agent throws, closes what is open and is thrown on, as an `Error`. `return()` aborts the agent's signal at once,
 * also while the next event is awaited, and waits for the agent's `finally` for at most `graceMs`.
 */
export function runAgent (agent: Agent, input: AgentInput, context: RuntimeContext, options: RunAgentOptions = {}): AsyncGenerator<AgentEvent, void, undefined> {
  return new AgentRun(agent, input, context, options)
}

type Step =
  | { readonly kind: 'next', readonly result: IteratorResult<unknown, unknown> }
  | { readonly kind: 'thrown', readonly error: unknown }
  | { readonly kind: 'abandoned' }

class AgentRun implements AsyncGenerator<AgentEvent, void, undefined> {
  readonly #agent: Agent
  readonly #input: AgentInput
  readonly #context: RuntimeContext
  readonly #graceMs: number
  readonly #normaliser: Normaliser
  readonly #controller = new AbortController()
  readonly #queue: AgentEvent[] = []
  #head = 0
  #iterator: AsyncIterator<unknown> | undefined
  #outcome: { readonly error: unknown } | undefined
  #isDone = false
  #abandoned: Promise<Step> | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor (agent: Agent, input: AgentInput, context: RuntimeContext, options: RunAgentOptions) {
    this.#agent = agent
    this.#input = input
    this.#context = context
    this.#graceMs = options.graceMs ?? 5000
    const { knownCalls, onRepair } = options
    this.#normaliser = new Normaliser({
      agentName: agent.name, sessionId: context.sessionId, ...knownCalls && { knownCalls }, ...onRepair && { onRepair }
    })
  }

  next (): Promise<IteratorResult<AgentEvent, void>> {
    // One at a time, like a generator: the agent's iterator need not stand overlapping calls.
    const next = this.#last.then(() => this.#next())
    this.#last = next.catch(() => {})
    return next
  }

  async return (): Promise<IteratorResult<AgentEvent, void>> {
    this.#queue.length = this.#head = 0
    this.#outcome = undefined
    if (!this.#isDone) {
      this.#isDone = true
      this.#controller.abort(new RunInterrupted('system', { message: 'The consumer of the stream left.' }))
      this.#context.signal.removeEventListener('abort', this.#onAbort)
      const closing = this.#iterator?.return?.()
      if (closing !== undefined) await this.#withGrace(Promise.resolve(closing))
    }
    return { done: true, value: undefined }
  }

  async throw (error: unknown): Promise<IteratorResult<AgentEvent, void>> {
    await this.return()
    throw error
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  async [Symbol.asyncDispose] (): Promise<void> {
    await this.return()
  }

  async #next (): Promise<IteratorResult<AgentEvent, void>> {
    for (;;) {
      const event = this.#queue[this.#head]
      if (event !== undefined) {
        this.#head++
        return { done: false, value: event }
      }
      this.#queue.length = this.#head = 0
      if (this.#outcome !== undefined) {
        const { error } = this.#outcome
        this.#outcome = undefined
        throw error
      }
      if (this.#isDone) return { done: true, value: undefined }
      await this.#step()
    }
  }

  async #step (): Promise<void> {
    const step = await this.#pull()
    if (this.#isDone) return
    if (step.kind === 'next' && step.result.done !== true) this.#normaliser.push(step.result.value, this.#emit)
    else this.#finish(step)
  }

  async #pull (): Promise<Step> {
    try {
      this.#iterator ??= this.#start()
      const next = this.#iterator.next().then((result): Step => ({ kind: 'next', result }), (error: unknown): Step => ({ kind: 'thrown', error }))
      return await Promise.race([next, this.#abandonment()])
    } catch (error) {
      return { kind: 'thrown', error }
    }
  }

  #start (): AsyncIterator<unknown> {
    const { signal } = this.#context
    if (signal.aborted) this.#onAbort()
    else signal.addEventListener('abort', this.#onAbort, { once: true })
    const stream: unknown = this.#agent.stream(this.#input, deriveContext(this.#context, { signal: this.#controller.signal }))
    if (typeof stream !== 'object' || stream === null || !(Symbol.asyncIterator in stream)) {
      throw new AgentError({ code: 'internal_error', message: `Agent ${this.#agent.name} gave no async iterable` })
    }
    return (stream as AsyncIterable<unknown>)[Symbol.asyncIterator]()
  }

  #finish (step: Step): void {
    this.#isDone = true
    this.#context.signal.removeEventListener('abort', this.#onAbort)
    const { aborted, reason } = this.#controller.signal
    const isInterrupted = aborted && reason instanceof RunInterrupted
    // The failure of what is abandoned has no reader any more.
    if (step.kind === 'abandoned') Promise.resolve(this.#iterator?.return?.()).catch(() => {})
    if (isInterrupted) return this.#normaliser.end({ kind: 'interrupted' }, this.#emit)
    if (step.kind === 'next' && (!aborted || this.#normaliser.hasEnded)) return this.#normaliser.end({ kind: 'returned' }, this.#emit)
    this.#normaliser.end({ kind: 'failed' }, this.#emit)
    const error = step.kind === 'thrown' ? step.error : reason
    this.#outcome = { error: error instanceof Error ? error : toAgentError(error) }
  }

  readonly #emit = (event: AgentEvent): void => { this.#queue.push(event) }

  readonly #onAbort = (): void => { this.#controller.abort(this.#context.signal.reason) }

  /** Settles `graceMs` after the abort. */
  #abandonment (): Promise<Step> {
    this.#abandoned ??= new Promise((resolve) => {
      const { signal } = this.#controller
      const wait = (): void => { setTimeout(resolve, this.#graceMs, { kind: 'abandoned' }).unref() }
      if (signal.aborted) wait()
      else signal.addEventListener('abort', wait, { once: true })
    })
    return this.#abandoned
  }

  async #withGrace (closing: Promise<unknown>): Promise<void> {
    await Promise.race([closing, this.#abandonment()])
  }
}
