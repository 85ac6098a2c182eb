import {
  AgentError, createRuntimeContext, Normaliser, type Agent, type AgentEvent, type AgentEventInit, type RunInterrupted
} from '../agent/index.ts'
import { type RunRecord } from '../stores/index.ts'
import { type FlowControl } from './flow.ts'
import { type Claims } from './interrupts.ts'
import { type RunObserver } from './observer.ts'
import { type Emit, type ExecutionInfo, type Projection, type RunProtocol } from './protocol.ts'
import { Pump } from './pump.ts'
import { type ExecutionSpec } from './spec.ts'

/** An agent that does not ask for permission must not run where permissions were taken away (DECISIONS 3). */
const DENY_RULES_UNSUPPORTED = { code: 'deny_rules_unsupported', message: 'The agent does not enforce deny rules.', expose: true } as const

/** How an execution ended by itself. */
export type ExecutionOutcome =
  | { readonly kind: 'returned', readonly normaliser: Normaliser }
  | { readonly kind: 'threw', readonly error: unknown }

/** What an execution asks of the run it belongs to. */
export interface ExecutionHost {
  readonly emit: Emit
  /** From here on everything is held (R3). */
  hold (): void
  /** The present in ISO 8601, for events that bring no time. */
  readonly timestamp: () => string
  /** Something about the agent that an operator should know. */
  warn (error: unknown, sentence: string): void
}

/** What an execution is made of. */
export interface ExecutionOptions {
  readonly host: ExecutionHost
  /** Asked before and after each event; it must not reject. */
  readonly flow: FlowControl
  readonly protocol: RunProtocol
  readonly record: RunRecord
  readonly info: ExecutionInfo
  readonly claims: Claims | undefined
  readonly observer: RunObserver | undefined
}

/** One `agent.stream()` call of a run: agent, context, normaliser and projection, from the first event to the last. */
export class Execution {
  readonly #options: ExecutionOptions
  readonly #controller = new AbortController()
  readonly #openCalls = new Set<string>()
  #projection: Projection | undefined
  #normaliser: Normaliser | undefined
  #agent: Agent | undefined
  #graceMs = 0

  constructor (options: ExecutionOptions) {
    this.#options = options
  }

  get signal (): AbortSignal {
    return this.#controller.signal
  }

  /** The instance, once it was made. */
  get agent (): Agent | undefined {
    return this.#agent
  }

  /** What was accumulated; `undefined` before the agent was made. */
  get normaliser (): Normaliser | undefined {
    return this.#normaliser
  }

  /** Announced tool calls that lack their result. */
  get openCalls (): readonly string[] {
    return [...this.#openCalls]
  }

  /** Aborts; the agent gets at most `maxGraceMs` of its own grace to settle. */
  abort (reason: RunInterrupted, maxGraceMs = Infinity): void {
    this.#graceMs = Math.min(this.#graceMs, maxGraceMs)
    this.#controller.abort(reason)
  }

  /** The projection, opened; made on first use, so that an execution that never began still ends legally. */
  open (): Projection {
    if (this.#projection !== undefined) return this.#projection
    const { protocol, record, info, host } = this.#options
    const projection = protocol.project(record, info)
    projection.open(host.emit)
    this.#projection = projection
    return projection
  }

  /** Runs to the end of the agent's iterator; `undefined` when it was aborted, and who did that knows why. Never rejects. */
  async run (spec: ExecutionSpec): Promise<ExecutionOutcome | undefined> {
    const { observer } = this.#options
    observer?.running?.()
    return await (observer?.execute === undefined ? this.#run(spec) : observer.execute(() => this.#run(spec)))
  }

  /** Feeds the normaliser's last events to the projection. What either throws is the caller's to handle. */
  finish (kind: 'returned' | 'interrupted' | 'failed'): void {
    this.#normaliser?.end({ kind }, this.#onEvent)
  }

  async #run (spec: ExecutionSpec): Promise<ExecutionOutcome | undefined> {
    this.#graceMs = spec.cancelGraceMs
    try {
      this.open()
      const agent = await this.#untilAborted(this.#makeAgent(spec))
      return agent === undefined ? undefined : await this.#stream(agent, spec)
    } catch (error) {
      return { kind: 'threw', error }
    }
  }

  async #stream (agent: Agent, spec: ExecutionSpec): Promise<ExecutionOutcome | undefined> {
    if ((spec.denyRules?.length ?? 0) > 0 && agent.capabilities?.denyRules !== true) throw new AgentError(DENY_RULES_UNSUPPORTED)
    const { record, info, host, flow } = this.#options
    const { sessionId = record.session } = spec
    const context = createRuntimeContext({
      sessionId,
      runId: record.clientId,
      protocol: record.key.protocol,
      signal: this.signal,
      userId: spec.userId,
      denyRules: spec.denyRules
    })
    const prepared = await this.#untilAborted(Promise.resolve(spec.prepareContext?.(context)).then(() => true))
    if (prepared === undefined) return undefined
    let { observer } = this.#options
    const normaliser = this.#normaliser = new Normaliser({ agentName: agent.name, sessionId, knownCalls: info.knownCalls, now: host.timestamp })
    const pump = new Pump<AgentEventInit>({
      signal: this.signal,
      graceMs: () => this.#graceMs,
      blocked: () => flow.blocked(),
      guard: () => flow.guard(),
      onValue: (value) => {
        if (observer !== undefined) {
          observer.firstEvent?.()
          observer = undefined
        }
        normaliser.push(value, this.#onEvent)
      }
    })
    this.#options.claims?.given()
    const end = await pump.run(() => agent.stream(spec.input, context))
    switch (end.kind) {
      case 'returned': return { kind: 'returned', normaliser }
      case 'threw': return end
      case 'aborted': return undefined
    }
  }

  async #makeAgent ({ agent }: ExecutionSpec): Promise<Agent> {
    const made = typeof agent === 'function' ? await agent(this.signal) : agent
    if (!this.signal.aborted) this.#agent = made
    // Nobody waits for it any more.
    else if (typeof agent === 'function') await closeAgent(made, this.#options.host)
    return made
  }

  /** What `work` resolves to, or `undefined` as soon as the execution is aborted. Rejections after that are dropped. */
  async #untilAborted<T> (work: Promise<T>): Promise<T | undefined> {
    const { signal } = this
    let onAbort = (): void => {}
    const aborted = new Promise<undefined>((resolve) => {
      onAbort = () => { resolve(undefined) }
      if (signal.aborted) resolve(undefined)
      else signal.addEventListener('abort', onAbort, { once: true })
    })
    try {
      return await Promise.race([work, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  #outcome (write: (() => Promise<void>) | undefined): void {
    // An approved call has its outcome: it is written before the next event is taken (R21).
    if (write !== undefined) this.#options.flow.after(write)
  }

  readonly #onEvent = (event: AgentEvent): void => {
    const { host, claims } = this.#options
    if (event.source === undefined) {
      switch (event.type) {
        case 'TOOL_CALL_START':
          this.#openCalls.add(event.toolCallId)
          break
        case 'TOOL_RESULT_END':
          this.#openCalls.delete(event.toolCallId)
          this.#outcome(claims?.outcomeOf(event))
          break
        case 'REQUIRE_USER_CONFIRM':
        case 'REQUIRE_EXTERNAL_EXECUTION':
        case 'REQUIRE_INPUT':
        case 'AGENT_RESULT':
        case 'AGENT_END':
          host.hold()
      }
    }
    this.open().next(event, host.emit)
  }
}

/** Closes an instance that was made for one run. What that throws is for the operator. */
export async function closeAgent (agent: Agent, { warn }: Pick<ExecutionHost, 'warn'>): Promise<void> {
  try {
    await agent.close?.()
  } catch (error) {
    warn(error, 'closing an agent failed')
  }
}
