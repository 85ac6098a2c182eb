import { type FastifyInstance } from 'fastify'

/** What a run is like when somebody asks for it. */
export const STATES = ['running', 'waiting', 'finished'] as const
export type State = typeof STATES[number]

/** What a request is about: an id that is the caller's own, somebody else's, or nobody's, and what goes with it. */
export interface Target {
  /** Of the thread, task or context. All ids of one comparison are equally long. */
  readonly id: string
  /** The last event's id that its owner has seen. */
  readonly cursor: string
  /** An interrupt that is open, where the run waits. */
  readonly interruptId: string
  /** Our own id of the run, which some protocols tell. */
  readonly runId: string
}

/** One request of a row. */
export interface Asked {
  readonly url: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One way of using a route. */
export interface Row {
  readonly request: (target: Target) => Asked
  /** States in which the owner's own answer is another one than a stranger's: else the row would prove nothing. */
  readonly differs: readonly State[]
}

/** A protocol in the matrix. Add another one by a file `<plugin>.test.ts` that makes this and plays it. */
export interface MatrixProtocol {
  readonly name: string
  /** Adds the protocol's routes; agents and engine are there. */
  register (app: FastifyInstance): Promise<void>
  /**
   * The request that makes a run of this id. Its agent is told apart from outside: the same request makes a run that goes on, waits for an
   * approval, or is over.
   */
  arrange (id: string): Asked
  /** Whether the arranging request answers with the run's own stream. */
  readonly isStreamed: boolean
  /** Rows by `METHOD /path` as the route is registered, then by what is done. HEAD rows are made from those of GET. */
  readonly rows: Readonly<Record<string, Readonly<Record<string, Row>>>>
  /** Routes that are about no run, and why. */
  readonly exempt: Readonly<Record<string, string>>
}
