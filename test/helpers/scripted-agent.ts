import { type Agent, type AgentCapabilities, type AgentEventInit, type AgentInput, type RuntimeContext } from '../../lib/agent/index.ts'

type Result = IteratorResult<AgentEventInit>
interface Pull { resolve (result: Result): void, reject (error: unknown): void }

/** One `stream()` call of a {@link ScriptedAgent}, steered step by step by its test. */
export class ScriptedExecution implements AsyncIterableIterator<AgentEventInit> {
  readonly input: AgentInput
  readonly context: RuntimeContext
  /** Resolves when the consumer calls `return()`. */
  readonly returned: Promise<void>
  /** Never settles a pull or a `return()` after an abort. */
  isDeaf = false
  /** The iterator has ended: it was done, has thrown, or was returned from. */
  isDone = false
  pulls = 0
  returns = 0
  #steps: ((pull: Pull) => void)[] = []
  #waiting: Pull[] = []
  #onReturn: () => void = () => {}
  #isOver = false
  #idle: (() => void)[] = []

  constructor (input: AgentInput, context: RuntimeContext) {
    this.input = input
    this.context = context
    this.returned = new Promise((resolve) => { this.#onReturn = resolve })
  }

  /** Steps that the consumer has not asked for yet. */
  get queued (): number {
    return this.#steps.length
  }

  /** Yields events; resolves when the consumer asks for more after them. */
  async say (...events: readonly AgentEventInit[]): Promise<void> {
    for (const event of events) this.#step((pull) => { pull.resolve({ done: false, value: event }) })
    await this.asked()
  }

  /** Yields text as deltas of one block. */
  async text (...deltas: readonly string[]): Promise<void> {
    await this.say(...deltas.map((delta): AgentEventInit => ({ type: 'TEXT_BLOCK_DELTA', blockId: 'b', delta })))
  }

  /** Resolves when the consumer waits for the next step. */
  async asked (): Promise<void> {
    if (this.#waiting.length > 0 || this.#isOver) return
    await new Promise<void>((resolve) => { this.#idle.push(resolve) })
  }

  /** Ends the iterator. */
  finish (): void {
    this.#step((pull) => {
      this.isDone = true
      pull.resolve({ done: true, value: undefined })
    })
  }

  /** Makes the iterator throw. */
  fail (error: unknown): void {
    this.#step((pull) => {
      this.isDone = true
      pull.reject(error)
    })
  }

  next (): Promise<Result> {
    this.pulls++
    return new Promise((resolve, reject) => {
      const pull = { resolve, reject }
      const step = this.#steps.shift()
      if (step !== undefined) step(pull)
      else if (this.#isOver) resolve({ done: true, value: undefined })
      else this.#waiting.push(pull)
      if (this.#waiting.length > 0) for (const wake of this.#idle.splice(0)) wake()
    })
  }

  return (): Promise<Result> {
    this.returns++
    this.#onReturn()
    for (const wake of this.#idle.splice(0)) wake()
    if (this.isDeaf) return new Promise(() => {})
    this.#isOver = true
    this.isDone = true
    for (const pull of this.#waiting.splice(0)) pull.resolve({ done: true, value: undefined })
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator] (): this {
    return this
  }

  #step (step: (pull: Pull) => void): void {
    const pull = this.#waiting.shift()
    if (pull === undefined) this.#steps.push(step)
    else step(pull)
  }
}

/** An agent that does what its test says, when it says so. */
export class ScriptedAgent implements Agent {
  readonly name = 'scripted'
  readonly capabilities: AgentCapabilities
  readonly executions: ScriptedExecution[] = []
  closed = 0
  #coming: ((execution: ScriptedExecution) => void)[] = []
  #unseen: ScriptedExecution[] = []

  constructor (capabilities: AgentCapabilities = {}) {
    this.capabilities = capabilities
  }

  /** The next `stream()` call, made already or to come. */
  async called (): Promise<ScriptedExecution> {
    const execution = this.#unseen.shift()
    if (execution !== undefined) return execution
    return await new Promise((resolve) => { this.#coming.push(resolve) })
  }

  stream (input: AgentInput, context: RuntimeContext): AsyncIterable<AgentEventInit> {
    const execution = new ScriptedExecution(input, context)
    this.executions.push(execution)
    const waiter = this.#coming.shift()
    if (waiter === undefined) this.#unseen.push(execution)
    else waiter(execution)
    return execution
  }

  close (): void {
    this.closed++
  }
}
