/** What an {@link AgentError} is made of. */
export interface AgentErrorInit {
  /** Stable, machine readable, lower snake case: `rate_limited`. */
  readonly code: string
  readonly message: string
  /** HTTP status that fits, for protocols that still can send one. */
  readonly statusCode?: number | undefined
  /** Trying the same again later may help. */
  readonly retryable?: boolean | undefined
  /** The message may be shown to clients. @default false */
  readonly expose?: boolean | undefined
  readonly cause?: unknown
}

/** A failure that an agent explains (agent-events 9.5). Anything else it throws is reported as `internal_error`. */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: string
  readonly statusCode: number | undefined
  readonly retryable: boolean | undefined
  readonly expose: boolean

  constructor (init: AgentErrorInit) {
    super(init.message, init.cause === undefined ? undefined : { cause: init.cause })
    this.code = init.code
    this.statusCode = init.statusCode
    this.retryable = init.retryable
    this.expose = init.expose ?? false
  }

  /** What clients are told: the message if it may be exposed, else a constant sentence. */
  get publicMessage (): string {
    return this.expose ? this.message : 'The agent failed.'
  }
}

/** Turns whatever was thrown into an {@link AgentError}; what is not one becomes the cause of an `internal_error`. */
export function toAgentError (thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown
  return new AgentError({ code: 'internal_error', message: thrown instanceof Error ? thrown.message : 'The agent threw no error object', cause: thrown })
}
