import { type Agent } from '../agent/index.ts'
import { closeAgent, type ExecutionHost } from './execution.ts'

/** The instances that were made for one run: closed once, when it needs them no more. */
export class KeptAgents {
  readonly #host: Pick<ExecutionHost, 'warn'>
  readonly #agents: Agent[] = []

  /** @param host is told where closing one fails. */
  constructor (host: Pick<ExecutionHost, 'warn'>) {
    this.#host = host
  }

  /** The one that was made last. */
  get last (): Agent | undefined {
    return this.#agents.at(-1)
  }

  add (agent: Agent): void {
    this.#agents.push(agent)
  }

  /** Another object of the run keeps them from now on. */
  handOver (to: KeptAgents): void {
    to.#agents.push(...this.#agents.splice(0))
  }

  /** Closes all of them. Never rejects. */
  async close (): Promise<void> {
    await Promise.all(this.#agents.splice(0).map((agent) => closeAgent(agent, this.#host)))
  }
}
