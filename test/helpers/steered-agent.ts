// An agent that a test drives from outside, event by event.
import { type Agent, type AgentEventInit, type AgentInput, type RuntimeContext } from '../../lib/agent/index.ts'

/** One `stream()` call of a {@link Steered} agent. */
export class SteeredRun {
  readonly input: AgentInput
  readonly context: RuntimeContext
  /** Resolves when the agent is done: returned, failed, or its iterator was closed. */
  readonly over: Promise<void>
  /** Events that were taken from the agent. */
  taken = 0
  readonly #queue: unknown[] = []
  readonly #isDeaf: boolean
  #wake: () => void = () => {}
  #end: { readonly error?: unknown } | undefined
  #isOver: () => void = () => {}

  constructor (input: AgentInput, context: RuntimeContext, isDeaf: boolean) {
    this.input = input
    this.context = context
    this.#isDeaf = isDeaf
    this.over = new Promise((resolve) => { this.#isOver = resolve })
  }

  /** Events for the server to take. */
  push (...events: readonly AgentEventInit[]): void {
    this.#queue.push(...events)
    this.#wake()
  }

  /** Text of the reply `replyId`. */
  say (delta: string, replyId = 'reply'): void {
    this.push({ type: 'TEXT_BLOCK_DELTA', replyId, blockId: 'text', delta })
  }

  /** The agent returns after what was pushed. */
  end (): void {
    this.#end = {}
    this.#wake()
  }

  /** The agent throws after what was pushed. */
  fail (error: unknown): void {
    this.#end = { error }
    this.#wake()
  }

  async * events (): AsyncGenerator<AgentEventInit, void, undefined> {
    const { signal } = this.context
    const onAbort = (): void => { this.#wake() }
    if (!this.#isDeaf) signal.addEventListener('abort', onAbort)
    try {
      for (;;) {
        if (signal.aborted && !this.#isDeaf) throw signal.reason
        if (this.#queue.length > 0) {
          this.taken++
          yield this.#queue.shift() as AgentEventInit // pushed as such
          continue
        }
        if (this.#end !== undefined) {
          if ('error' in this.#end) throw this.#end.error
          return
        }
        await new Promise<void>((resolve) => { this.#wake = resolve })
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#isOver()
    }
  }
}

/** An agent whose runs wait for the test. */
export interface Steered extends Agent {
  /** All runs so far. */
  readonly runs: readonly SteeredRun[]
  /** How often `close()` was called. */
  readonly closed: number
  /** The next run that nobody has asked for yet. */
  next (): Promise<SteeredRun>
}

/** Makes a {@link Steered} agent; a deaf one ignores its abort signal. */
export function steered (options: Pick<Agent, 'capabilities'> & { readonly name?: string, readonly deaf?: boolean } = {}): Steered {
  const runs: SteeredRun[] = []
  const waiting: ((run: SteeredRun) => void)[] = []
  let asked = 0
  let closed = 0
  return {
    name: options.name ?? 'steered',
    ...options.capabilities !== undefined && { capabilities: options.capabilities },
    runs,
    get closed () { return closed },
    close () { closed++ },
    stream (input, context) {
      const run = new SteeredRun(input, context, options.deaf === true)
      runs.push(run)
      waiting.shift()?.(run)
      return run.events()
    },
    next () {
      const run = runs[asked++]
      if (run !== undefined) return Promise.resolve(run)
      return new Promise((resolve) => { waiting.push(resolve) })
    }
  }
}

/** An agent that yields these events, and then throws if there is something to throw. */
export function scripted (events: readonly AgentEventInit[], thrown?: { readonly error: unknown }): Agent & { readonly calls: AgentInput[] } {
  const calls: AgentInput[] = []
  return {
    name: 'scripted',
    calls,
    async * stream (input) {
      calls.push(input)
      yield * events
      if (thrown !== undefined) throw thrown.error
    }
  }
}
