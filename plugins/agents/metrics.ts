import { type FastifyInstance } from 'fastify'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type ObservedEnd, type RunObserver, type StartingRun } from '../../lib/runs/index.ts'
import { type SseObserver } from '../../lib/sse/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { type AgentsHost } from './host.ts'
import { type Watcher } from './watcher.ts'

/** Agents that have a label of their own; what a server registers beyond that, and what is not registered, is counted as `other`. */
const MAX_AGENTS = 100

const RUN_BUCKETS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 7_200]
const FIRST_EVENT_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const STORE_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

/**
 * Counts runs, streams and store calls for Prometheus, in a registry of its own. Labels are protocols, agents and reasons, never ids; what is
 * counted is counted once a run, a stream or a store call, and gauges are read when somebody asks. Loaded only where `metrics` is set.
 */
export class Metrics implements Watcher {
  readonly #path: string
  readonly #registry = new Registry()
  readonly #agents = new Set<string>()
  #isAgent: AgentsHost['isAgent'] = () => false
  readonly #started: Counter<'protocol' | 'agent'>
  readonly #resumed: Counter<'protocol' | 'agent'>
  readonly #ended: Counter<'protocol' | 'agent' | 'reason'>
  readonly #firstEvent: Histogram<'protocol' | 'agent'>
  readonly #duration: Histogram<'protocol' | 'agent'>
  readonly #leasesLost: Counter<'protocol'>
  readonly #reaped: Counter<'protocol'>
  readonly #storeCalls: Histogram<'operation' | 'outcome'>
  readonly #streams: Gauge<'protocol'>
  readonly #closed: Counter<'protocol' | 'outcome'>
  readonly #gaps: Counter<'protocol' | 'reason'>

  /** @param path where the text is served */
  constructor (path: string) {
    this.#path = path
    const registers = [this.#registry]
    const counter = <Label extends string>(name: string, help: string, ...labelNames: readonly Label[]) => new Counter({ name: `fastify_agents_${name}`, help, labelNames, registers })
    const histogram = <Label extends string>(name: string, help: string, buckets: number[], ...labelNames: readonly Label[]) =>
      new Histogram({ name: `fastify_agents_${name}`, help, labelNames, buckets, registers })
    this.#started = counter('runs_started_total', 'Runs that were started.', 'protocol', 'agent')
    this.#resumed = counter('runs_resumed_total', 'Executions that went on after a pause.', 'protocol', 'agent')
    this.#ended = counter('runs_ended_total', 'Executions that ended, by reason.', 'protocol', 'agent', 'reason')
    this.#firstEvent = histogram('run_first_event_seconds', 'From the start of an execution to the first event of its agent.', FIRST_EVENT_BUCKETS, 'protocol', 'agent')
    this.#duration = histogram('run_seconds', 'From the start of an execution to its end.', RUN_BUCKETS, 'protocol', 'agent')
    this.#leasesLost = counter('leases_lost_total', 'Runs that another node took from this one.', 'protocol')
    this.#reaped = counter('runs_reaped_total', 'Runs of dead nodes that this one ended.', 'protocol')
    this.#storeCalls = histogram('store_call_seconds', 'Calls of the store: ok, failed, or late (given up).', STORE_BUCKETS, 'operation', 'outcome')
    this.#streams = new Gauge({ name: 'fastify_agents_streams_open', help: 'Streams whose connection is open.', labelNames: ['protocol'], registers })
    this.#closed = counter('streams_closed_total', 'Streams that are over, by how they ended; lagged = cut with a cursor.', 'protocol', 'outcome')
    this.#gaps = counter('stream_gaps_total', 'Readers that were told of events they can not have any more.', 'protocol', 'reason')
  }

  attach (app: FastifyInstance, host: AgentsHost): void {
    const { engine } = host
    this.#isAgent = (name) => host.isAgent(name)
    const gauge = (name: string, help: string): Gauge<'state'> => new Gauge({ name: `fastify_agents_${name}`, help, labelNames: ['state'], registers: [this.#registry] })
    const runs = gauge('runs', 'Runs that this node has in hand.')
    const longestQueue = gauge('longest_queue', 'Runs in the longest queue of a session.')
    const logBytes = gauge('log_bytes', 'Bytes of run logs in memory.')
    app.get(this.#path, { logLevel: 'warn', schema: { hide: true } }, async (_request, reply) => {
      const { pending, running, waiting, ...census } = engine.census()
      for (const [state, count] of Object.entries({ pending, running, waiting })) runs.set({ state }, count)
      longestQueue.set(census.longestQueue)
      logBytes.set(census.logBytes)
      return await reply.type(this.#registry.contentType).header('cache-control', 'no-store').send(await this.#registry.metrics())
    })
  }

  starting ({ protocol, agent: name, isResumed }: StartingRun): RunObserver {
    const labels = { protocol, agent: this.#agentLabel(name) }
    const startedAt = performance.now()
    const seconds = (): number => (performance.now() - startedAt) / 1_000
    return {
      running: () => { (isResumed ? this.#resumed : this.#started).inc(labels) },
      firstEvent: () => { this.#firstEvent.observe(labels, seconds()) },
      ended: ({ reason }: ObservedEnd) => {
        this.#ended.inc({ ...labels, reason })
        if (reason === 'lost') this.#leasesLost.inc({ protocol })
        if (reason !== 'not-started') this.#duration.observe(labels, seconds())
      }
    }
  }

  reaped ({ key }: RunRecord): void {
    this.#reaped.inc({ protocol: key.protocol })
  }

  storeCalled (operation: string, ms: number, outcome: string): void {
    this.#storeCalls.observe({ operation, outcome }, ms / 1_000)
  }

  streams (protocol: string): SseObserver {
    return {
      opened: () => {
        this.#streams.inc({ protocol })
        return {
          gap: (reason) => { this.#gaps.inc({ protocol, reason }) },
          closed: (outcome) => {
            this.#streams.dec({ protocol })
            this.#closed.inc({ protocol, outcome })
          }
        }
      }
    }
  }

  #agentLabel (name: string): string {
    if (this.#agents.has(name)) return name
    if (this.#agents.size >= MAX_AGENTS || !this.#isAgent(name)) return 'other'
    this.#agents.add(name)
    return name
  }
}
