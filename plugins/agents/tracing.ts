import { context, isSpanContextValid, propagation, SpanStatusCode, trace, type Context, type Link, type Span, type SpanContext, type Tracer } from '@opentelemetry/api'
import { type FastifyInstance } from 'fastify'
import { isObject } from '../../lib/agent/index.ts'
import { type RunObserver, type StartingRun } from '../../lib/runs/index.ts'
import { type SseObserver } from '../../lib/sse/index.ts'
import { type RunRecord } from '../../lib/stores/index.ts'
import { type AgentsHost } from './host.ts'
import { type Watcher } from './watcher.ts'

/** Names of our attributes. */
const Attribute = {
  protocol: 'fastify_agents.protocol',
  run: 'fastify_agents.run_id',
  resumed: 'fastify_agents.resumed',
  end: 'fastify_agents.end',
  operation: 'gen_ai.operation.name',
  agent: 'gen_ai.agent.name',
  error: 'error.type'
} as const

/** W3C Trace Context, 3.2: version 00. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/**
 * Spans of runs and streams, by the OpenTelemetry API alone: where they go is the SDK's business. Loaded only where `tracing` is set.
 *
 * A run has a span for each execution, a child of the request that started it; the context of the first is kept with the run, and whatever goes on
 * with it, on any node, is a child of that one and linked to its own request. A stream has a span of its own, as it may begin later and
 * end earlier or later than the run it shows: a child of its request, linked to the run. While an agent is pulled its run's context is
 * the active one, so that the agent's own spans become children of the run.
 */
export class Tracing implements Watcher {
  readonly #tracer: Tracer = trace.getTracer('fastify-agents')
  #isAgent: AgentsHost['isAgent'] = () => false

  /** The request's own context, unless an instrumentation of the server has set one. */
  attach (app: FastifyInstance, host: AgentsHost): void {
    this.#isAgent = (name) => host.isAgent(name)
    // After the body was read: what reads it runs in the connection's context, and would lose ours.
    app.addHook('preHandler', (request, _reply, done) => {
      const active = context.active()
      if (trace.getSpan(active) !== undefined) done()
      else context.with(propagation.extract(active, request.headers), done)
    })
  }

  starting ({ id, protocol, agent, isResumed, trace: stored }: StartingRun): RunObserver {
    const request = context.active()
    const first = parseTraceparent(stored)
    const parent = first === undefined ? request : trace.setSpanContext(request, first)
    const span = this.#tracer.startSpan(this.#spanName('invoke_agent', agent), {
      attributes: {
        [Attribute.operation]: 'invoke_agent', [Attribute.agent]: agent, [Attribute.protocol]: protocol, [Attribute.run]: id, [Attribute.resumed]: isResumed
      },
      links: first === undefined ? [] : linksTo(trace.getSpanContext(request))
    }, parent)
    const own: Context = trace.setSpan(request, span)
    const text = formatTraceparent(span.spanContext())
    return {
      ...text !== undefined && { trace: text },
      execute: (work) => context.with(own, work),
      firstEvent: () => { span.addEvent('first event') },
      answers: (paused) => { addLinks(span, linksTo(parseTraceparent(paused.trace))) },
      ended: ({ reason, code }) => {
        span.setAttribute(Attribute.end, reason)
        if (reason === 'failed' || reason === 'timeout' || reason === 'unavailable' || reason === 'lost' || reason === 'not-started') {
          span.setStatus({ code: SpanStatusCode.ERROR })
          span.setAttribute(Attribute.error, code ?? reason)
        }
        span.end()
      }
    }
  }

  /** The dead node's span never came: this one says in its place how the run ended. */
  reaped ({ key, agent, trace: stored }: RunRecord): void {
    const first = parseTraceparent(stored)
    const span = this.#tracer.startSpan(this.#spanName('end_lost_agent', agent), {
      attributes: { [Attribute.agent]: agent, [Attribute.protocol]: key.protocol, [Attribute.run]: key.id, [Attribute.end]: 'lost' }
    }, first === undefined ? context.active() : trace.setSpanContext(context.active(), first))
    span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
  }

  streams (protocol: string): SseObserver {
    return {
      opened: (_reply, about) => {
        const stored = isObject(about) && typeof about['trace'] === 'string' ? about['trace'] : undefined
        const span = this.#tracer.startSpan(`stream ${protocol}`, { attributes: { [Attribute.protocol]: protocol }, links: linksTo(parseTraceparent(stored)) })
        return {
          gap: (reason) => { span.addEvent('gap', { reason }) },
          closed: (outcome) => {
            span.setAttribute(Attribute.end, outcome)
            span.end()
          }
        }
      }
    }
  }

  /** Names of spans are few: what a client has made up stands in the attribute alone. */
  #spanName (what: string, agent: string): string {
    return this.#isAgent(agent) ? `${what} ${agent}` : what
  }
}

function linksTo (linked: SpanContext | undefined): Link[] {
  return linked === undefined ? [] : [{ context: linked }]
}

/** The API has it since 1.9; without it the runs of one thread stand side by side. */
function addLinks (span: Span, links: readonly Link[]): void {
  for (const link of links) span.addLink?.(link)
}

/** Undefined where nobody records: then there is nothing to go on with. */
function formatTraceparent (of: SpanContext): string | undefined {
  if (!isSpanContextValid(of)) return undefined
  return `00-${of.traceId}-${of.spanId}-${of.traceFlags.toString(16).padStart(2, '0')}`
}

function parseTraceparent (text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
}
