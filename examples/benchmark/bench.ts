import { Child } from './child.ts'
import { type LoadCommand, type PublishPlan, type RequestSpec, type RequestsPlan, type Seen, type ServerCommand, type ServerStart, type Usage } from './messages.ts'
import { type RunPlan } from './pace.ts'
import { Unfinished } from './workload.ts'

const START_BOUND_MS = 30_000
/** Beyond a command's own bound, before the process is given up. */
const GRACE_MS = 15_000

/** One server and its load, as the workloads use them. Each question is bounded in time. */
export class Bench {
  readonly #peer: string
  readonly #server: Child<ServerCommand>
  readonly #load: Child<LoadCommand>
  #port = 0
  #lastEventId = ''

  private constructor (start: ServerStart) {
    this.#peer = start.peer
    this.#server = Child.start('server', 0, start)
    this.#load = Child.start('load', 1, {})
  }

  /** Starts both processes. They end by `stop`, or with this process. */
  static async start (start: ServerStart): Promise<Bench> {
    const bench = new Bench(start)
    try {
      const [listening] = await Promise.all([
        bench.#server.ready<{ port: number, lastEventId: string }>(START_BOUND_MS),
        bench.#load.ready(START_BOUND_MS)
      ])
      bench.#port = listening.port
      bench.#lastEventId = listening.lastEventId
      return bench
    } catch (error) {
      await bench.stop()
      throw error
    }
  }

  async stop (): Promise<void> {
    await Promise.all([this.#server.stop(), this.#load.stop()])
  }

  run (plan: RunPlan): RequestSpec {
    return { peer: this.#peer, port: this.#port, kind: 'run', plan }
  }

  topic (): RequestSpec {
    return { peer: this.#peer, port: this.#port, kind: 'topic' }
  }

  /** The topic for a client that was away since its beginning. */
  topicFromStart (): RequestSpec {
    return { ...this.topic(), lastEventId: this.#lastEventId }
  }

  /** Has the load do requests to their ends; all must be complete. */
  async requests (plan: RequestsPlan): Promise<Seen> {
    const seen = await this.#load.ask<Seen>({ do: 'requests', plan }, plan.boundMs + GRACE_MS)
    if (seen.incomplete > 0) {
      throw new Unfinished(`${seen.incomplete} of ${plan.total} responses incomplete, ${seen.events} of ${plan.total * plan.events} events`)
    }
    return seen
  }

  /** Opens connections that stay; all must be answered. */
  async open (request: RequestSpec, count: number, options: { readonly stall?: boolean, readonly boundMs: number }): Promise<void> {
    const { stall = false, boundMs } = options
    const opened = await this.#load.ask<number>({ do: 'open', request, count, stall, boundMs }, boundMs + GRACE_MS)
    if (opened !== count) throw new Unfinished(`${opened} of ${count} connections answered`)
  }

  /** What the open connections that read have received, once it is `events` each or the time is up. */
  received (events: number, boundMs: number): Promise<Seen> {
    return this.#load.ask({ do: 'await', events, boundMs }, boundMs + GRACE_MS)
  }

  /** Throws unless each of the readers had all its events. */
  requireAll (seen: Seen | undefined, readers: number): void {
    if (seen === undefined || seen.incomplete > 0) {
      throw new Unfinished(`${seen?.incomplete ?? readers} of ${readers} readers incomplete (${seen?.events ?? 0} events)`)
    }
  }

  /** Closes the open connections and waits until the server has noticed. */
  async closeAll (): Promise<void> {
    await this.#load.ask({ do: 'close' }, GRACE_MS)
    await this.subscribers(0)
  }

  /** Waits until the topic has so many subscribers, and throws when it has not within 20 s. */
  async subscribers (count: number): Promise<void> {
    const boundMs = 20_000
    const found = await this.#server.ask<number>({ do: 'subscribers', count, boundMs }, boundMs + GRACE_MS)
    if (found !== count) throw new Unfinished(`${found} subscribers, ${count} expected`)
  }

  publish (plan: PublishPlan): Promise<number> {
    return this.#server.ask({ do: 'publish', plan }, plan.boundMs + GRACE_MS)
  }

  /** What the server spends on `work`; `memory` collects garbage before and after and samples the peak. */
  async spent (work: () => Promise<void>, options: { readonly memory?: boolean } = {}): Promise<Usage> {
    const gc = options.memory ?? false
    await this.#server.ask({ do: 'begin', gc }, GRACE_MS)
    await work()
    return await this.#server.ask({ do: 'end', gc }, GRACE_MS)
  }
}
