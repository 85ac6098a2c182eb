import { context, propagation, trace, type Span } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import Fastify from 'fastify'
import t from 'tap'
import { type Agent, type AgentEventInit } from '../../../lib/agent/index.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { eventsOf, serveApp, type TestServer } from '../../helpers/ag-ui-app.ts'
import { steered, type SteeredRun } from '../../helpers/steered-agent.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
trace.setGlobalTracerProvider(provider)
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
// W3C Trace Context, the part that these tests need.
propagation.setGlobalPropagator({
  fields: () => ['traceparent'],
  inject () {},
  extract (into, carrier) {
    const [, traceId, spanId] = /^00-(\w+)-(\w+)-01$/.exec(String((carrier as Record<string, unknown>)['traceparent'])) ?? []
    return traceId === undefined || spanId === undefined ? into : trace.setSpanContext(into, { traceId, spanId, traceFlags: 1, isRemote: true })
  }
})

t.beforeEach(() => { exporter.reset() })

/** Waits for spans of these names to have ended, and gives them in that order. */
async function spans (...names: readonly string[]): Promise<readonly ReadableSpan[]> {
  for (;;) {
    const ended = [...exporter.getFinishedSpans()]
    const found = names.map((name) => {
      const index = ended.findIndex((span) => span.name === name)
      return index === -1 ? undefined : ended.splice(index, 1)[0]
    })
    if (found.every((span) => span !== undefined)) return found as ReadableSpan[]
    await new Promise((resolve) => { setImmediate(resolve) })
  }
}

const parentOf = (span: ReadableSpan | undefined): string | undefined => span?.parentSpanContext?.spanId
const idOf = (span: ReadableSpan | undefined): string | undefined => span?.spanContext().spanId
const linksOf = (span: ReadableSpan | undefined): string[] => span?.links.map((link) => link.context.spanId) ?? []

const REQUEST = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
const traced = { headers: { traceparent: `00-${REQUEST.traceId}-${REQUEST.spanId}-01` } }

const question: AgentEventInit = { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] }

/** Ends the run with a question; gives the id of the interrupt. */
async function ask (client: Parameters<typeof eventsOf>[0], run: SteeredRun): Promise<string | undefined> {
  run.push(question)
  run.end()
  return ((await eventsOf(client)).at(-1) as { outcome?: { interrupts: { id: string }[] } }).outcome?.interrupts[0]?.id
}

const answerTo = (server: TestServer, interruptId: string | undefined, options = {}) => server.run({
  runId: 'answer', resume: [{ interruptId, status: 'resolved', payload: { approved: true } }]
}, options)

t.test('a run is a child of the request that started it, its stream too, and linked to it', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, host: { tracing: true } })
  const client = await server.run({}, traced)
  const run = await agent.next()
  run.say('x')
  run.end()
  await client.text()
  const [runSpan, stream] = await spans('invoke_agent agent', 'stream ag-ui')
  t.equal(runSpan?.spanContext().traceId, REQUEST.traceId)
  t.equal(parentOf(runSpan), REQUEST.spanId)
  t.equal(parentOf(stream), REQUEST.spanId)
  t.strictSame(linksOf(stream), [idOf(runSpan)])
  const { 'fastify_agents.run_id': runId, ...attributes } = runSpan?.attributes ?? {}
  t.strictSame(attributes, { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'agent', 'fastify_agents.protocol': 'ag-ui', 'fastify_agents.resumed': false, 'fastify_agents.end': 'completed' })
  t.match(runId, /^[0-9a-f-]{36}$/)
  t.strictSame(runSpan?.events.map(({ name }) => name), ['first event'])
  t.strictSame(stream?.attributes, { 'fastify_agents.protocol': 'ag-ui', 'fastify_agents.end': 'ended' })
})

t.test('spans that an agent makes are children of its run, and those of runs beside each other are not mixed up', async (t) => {
  const tracer = trace.getTracer('test')
  let arrived = 0
  let go = (): void => {}
  const both = new Promise<void>((resolve) => { go = resolve })
  const agent: Agent = {
    name: 'traced',
    async * stream (_input, { sessionId }) {
      for (let step = 0; step < 3; step++) {
        tracer.startSpan(`step of ${sessionId}`).end()
        if (++arrived === 2) go()
        await both
        yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' }
        await new Promise((resolve) => { setImmediate(resolve) })
      }
    }
  }
  const server = await serveApp(t, { agent, host: { tracing: true } })
  const clients = await Promise.all(['a', 'b'].map((threadId) => server.run({ threadId, runId: threadId })))
  await Promise.all(clients.map((client) => client.text()))
  const steps = ['a', 'a', 'a', 'b', 'b', 'b'].map((name) => `step of ${name}`)
  const [first, second, ...rest] = await spans('invoke_agent agent', 'invoke_agent agent', ...steps)
  const parents = rest.map(parentOf)
  t.same(new Set([new Set(parents.slice(0, 3)).size, new Set(parents.slice(3)).size]), new Set([1]))
  t.same([parents[0], parents[5]].sort(), [idOf(first), idOf(second)].sort())
  t.not(first?.spanContext().traceId, second?.spanContext().traceId, 'without a request\'s own trace each run has one')
})

t.test('an instrumentation\'s own span of the request is the parent, rather than the headers', async (t) => {
  const agent = steered()
  const server: { span?: Span } = {}
  const { run } = await serveApp(t, {
    agent,
    host: { tracing: true },
    before: (app) => {
      app.addHook('preHandler', (_request, _reply, done) => {
        server.span = trace.getTracer('http').startSpan('POST')
        context.with(trace.setSpan(context.active(), server.span), done)
      })
    }
  })
  const client = await run({}, traced);
  (await agent.next()).end()
  await client.text()
  server.span?.end()
  const [runSpan, http] = await spans('invoke_agent agent', 'POST')
  t.equal(parentOf(runSpan), idOf(http))
})

t.test('the run that answers another one, on another node, is linked to it', async (t) => {
  const store = memoryStore()
  const agent = steered({ capabilities: { resume: true } })
  const first = await serveApp(t, { agent, store, host: { tracing: true } })
  const id = await ask(await first.run({}, traced), await agent.next())
  const [paused] = await spans('invoke_agent agent')
  t.equal(paused?.attributes['fastify_agents.end'], 'paused')
  exporter.reset()

  const second = await serveApp(t, { agent, store, host: { tracing: true } })
  const client = await answerTo(second, id);
  (await agent.next()).end()
  await client.text()
  const [answer] = await spans('invoke_agent agent')
  t.equal(answer?.attributes['fastify_agents.resumed'], true)
  t.strictSame(linksOf(answer), [idOf(paused)])
})

t.test('an execution that goes on in the same run is a child of the first one, and linked to its own request', async (t) => {
  const { Tracing } = await import('../../../plugins/agents/tracing.ts')
  const watcher = new Tracing()
  watcher.attach(Fastify(), { isAgent: (name: string) => name === 'a' } as unknown as Parameters<typeof watcher.attach>[1])
  const first = watcher.starting({ id: 'r', protocol: 'p', agent: 'a', isResumed: false })
  first.ended({ reason: 'paused' })
  const request = trace.getTracer('http').startSpan('POST /resume')
  const second = context.with(trace.setSpan(context.active(), request), () => watcher.starting({ id: 'r', protocol: 'p', agent: 'a', isResumed: true, ...first.trace !== undefined && { trace: first.trace } }))
  second.ended({ reason: 'failed', code: 'no_luck' })
  request.end()
  const [one, two, http] = await spans('invoke_agent a', 'invoke_agent a', 'POST /resume')
  t.equal(first.trace, `00-${one?.spanContext().traceId}-${idOf(one)}-01`)
  t.strictSame([two?.spanContext().traceId, parentOf(two)], [one?.spanContext().traceId, idOf(one)])
  t.strictSame(linksOf(two), [idOf(http)])
  t.match(two, { attributes: { 'fastify_agents.end': 'failed', 'error.type': 'no_luck' }, status: { code: 2 } })

  watcher.reaped({ key: { owner: {}, protocol: 'p', id: 'r' }, agent: 'a', trace: first.trace } as Parameters<typeof watcher.reaped>[0])
  watcher.reaped({ key: { owner: {}, protocol: 'p', id: 'r' }, agent: 'a', trace: 'forged' } as Parameters<typeof watcher.reaped>[0])
  const lost = await spans('end_lost_agent a', 'end_lost_agent a')
  t.strictSame(lost.map(parentOf), [idOf(one), undefined])
  watcher.starting({ id: 'r', protocol: 'p', agent: 'made up by a client', isResumed: false }).ended({ reason: 'failed', code: 'agent_not_found' })
  const [strange] = await spans('invoke_agent')
  t.equal(strange?.attributes['gen_ai.agent.name'], 'made up by a client')
})

t.test('the ends of runs and streams say how they ended', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, host: { tracing: true } })
  const client = await server.run()
  const run = await agent.next()
  client.destroy()
  await run.over
  const [left, stream] = await spans('invoke_agent agent', 'stream ag-ui')
  t.strictSame([left?.attributes['fastify_agents.end'], stream?.attributes['fastify_agents.end']], ['disconnect', 'disconnected'])
  t.equal(left?.status.code, 0, 'a client that goes is no error')
})

t.test('without the option there are no spans, and nothing is kept with the run', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run({}, traced);
  (await agent.next()).end()
  await client.text()
  t.strictSame(exporter.getFinishedSpans(), [])
  t.equal((await server.store.index.list({}, { limit: 1 })).runs[0]?.trace, undefined)
})

t.test('metrics and traces watch together', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, host: { tracing: true, metrics: { path: '/metrics' } } })
  const client = await server.run({}, traced)
  const run = await agent.next()
  run.say('x')
  run.end()
  await client.text()
  const [runSpan, stream] = await spans('invoke_agent agent', 'stream ag-ui')
  t.equal(parentOf(runSpan), REQUEST.spanId)
  t.strictSame(linksOf(stream), [idOf(runSpan)])
  const { body } = await server.app.inject('/metrics')
  t.match(body, /runs_ended_total\{protocol="ag-ui",agent="agent",reason="completed"\} 1/)
  t.match(body, /run_first_event_seconds_count\{protocol="ag-ui",agent="agent"\} 1/)
  t.match(body, /streams_closed_total\{protocol="ag-ui",outcome="ended"\} 1/)
})
