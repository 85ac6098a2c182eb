import t, { type Test } from 'tap'
import Fastify from 'fastify'
import { memoryStore } from '../../../lib/stores/index.ts'
import { agUi } from '../../../plugins/ag-ui/index.ts'
import { agents } from '../../../plugins/agents/index.ts'
import { eventsOf, readUntil, request, serveApp, type TestServer } from '../../helpers/ag-ui-app.ts'
import { FaultPlan, faultyStore } from '../../../lib/stores/index.ts'
import { steered } from '../../helpers/steered-agent.ts'
import { serveTasks } from '../../helpers/task-app.ts'

/** The samples of the exposition text: name with its labels, and value. */
async function scrape ({ app }: Pick<TestServer, 'app'>): Promise<Readonly<Record<string, number>>> {
  const response = await app.inject('/metrics')
  if (response.statusCode !== 200) throw new Error(response.body)
  const samples: Record<string, number> = {}
  for (const line of response.body.split('\n')) {
    const [, name, value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? []
    if (name !== undefined) samples[name.replace('fastify_agents_', '')] = Number(value)
  }
  return samples
}

/** Those that are asked for. */
async function some (server: Pick<TestServer, 'app'>, ...names: readonly string[]): Promise<readonly (number | undefined)[]> {
  const samples = await scrape(server)
  return names.map((name) => samples[name])
}

/** Waits for a sample to have a value: a connection's end is seen a moment after its client's. */
async function until (server: Pick<TestServer, 'app'>, name: string, value: number): Promise<void> {
  while ((await scrape(server))[name] !== value) await new Promise((resolve) => { setImmediate(resolve) })
}

async function measured (t: Test, options: Partial<Parameters<typeof serveApp>[1]> = {}): Promise<{ readonly server: TestServer, readonly agent: ReturnType<typeof steered>, readonly plan: FaultPlan }> {
  const agent = steered()
  const plan = new FaultPlan()
  const server = await serveApp(t, { agent, store: faultyStore(memoryStore(), plan), host: { metrics: { path: '/metrics' } }, ...options })
  return { server, agent, plan }
}

const ag = 'protocol="ag-ui"'
const label = `${ag},agent="agent"`

t.test('metrics are text for Prometheus under the path that was asked for, in a registry of their own', async (t) => {
  const { server } = await measured(t)
  const response = await server.app.inject('/metrics')
  t.match(response, { statusCode: 200, headers: { 'content-type': /^text\/plain; version=0\.0\.4/, 'cache-control': 'no-store' } })
  t.match(response.body, /# HELP fastify_agents_runs_started_total .+\n# TYPE fastify_agents_runs_started_total counter/)
  const { register } = await import('prom-client')
  t.strictSame(await register.getMetricsAsArray(), [])
  // A second server in the same process counts for itself.
  const other = await measured(t)
  await eventsOf(await (async () => {
    const client = await other.server.run();
    (await other.agent.next()).end()
    return client
  })())
  t.strictSame(await some(server, `runs_started_total{${label}}`), [undefined])
  t.strictSame(await some(other.server, `runs_started_total{${label}}`), [1])
})

t.test('runs are counted from their start to their end, by reason, and streams with them', async (t) => {
  const { server, agent } = await measured(t)
  const client = await server.run()
  const run = await agent.next()
  run.say('x')
  await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  t.strictSame(await some(server, 'runs{state="running"}', 'runs{state="pending"}', 'runs{state="waiting"}', `streams_open{${ag}}`, `run_first_event_seconds_count{${label}}`), [1, 0, 0, 1, 1])
  run.end()
  await client.text()
  await until(server, `streams_open{${ag}}`, 0)
  t.strictSame(await some(server, 'runs{state="running"}', `runs_started_total{${label}}`, `runs_ended_total{${label},reason="completed"}`, `streams_closed_total{${ag},outcome="ended"}`, `run_seconds_count{${label}}`), [0, 1, 1, 1, 1])

  const failing = await server.run({ threadId: 'failing' });
  (await agent.next()).fail(new Error('x'))
  await failing.text()
  const leaving = await server.run({ threadId: 'leaving' })
  const left = await agent.next()
  leaving.destroy()
  await left.over
  await until(server, `streams_closed_total{${ag},outcome="disconnected"}`, 1)
  await until(server, `runs_ended_total{${label},reason="disconnect"}`, 1)
  t.strictSame(await some(server, `runs_ended_total{${label},reason="failed"}`, `runs_started_total{${label}}`), [1, 3])
})

t.test('a thread\'s queue shows', async (t) => {
  const { server, agent } = await measured(t, { concurrency: 'queue' })
  const client = await server.run()
  const run = await agent.next()
  const queued = [await server.run({ runId: 'q1' }), await server.run({ runId: 'q2' })]
  t.strictSame(await some(server, 'runs{state="running"}', 'runs{state="pending"}', 'longest_queue'), [1, 2, 2])
  for (const other of queued) other.destroy()
  await until(server, 'runs{state="pending"}', 0)
  run.end()
  await client.text()
  t.strictSame(await some(server, 'runs{state="running"}', 'longest_queue', `runs_started_total{${label}}`, `runs_ended_total{${label},reason="disconnect"}`), [0, 0, 1, 2])
})

t.test('pauses, and what goes on after them, are told apart', async (t) => {
  const { server, agent } = await measured(t)
  const client = await server.run()
  const run = await agent.next()
  run.push({ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] })
  run.end()
  const [interrupt] = ((await eventsOf(client)).at(-1) as { outcome?: { interrupts: { id: string }[] } }).outcome?.interrupts ?? []
  const answer = await server.run({ runId: 'answer', resume: [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }] });
  (await agent.next()).end()
  await answer.text()
  t.strictSame(await some(server, `runs_started_total{${label}}`, `runs_resumed_total{${label}}`, `runs_ended_total{${label},reason="paused"}`, `runs_ended_total{${label},reason="completed"}`), [1, 1, 1, 1])
})

t.test('readers that ask for what is gone are counted, by what was wrong with their cursor', async (t) => {
  const { server, agent } = await measured(t, { replay: { maxEvents: 4 } })
  const client = await server.run()
  const run = await agent.next()
  run.push(...Array.from({ length: 50 }, () => ({ type: 'CUSTOM' as const, name: 'tick', value: {} })))
  run.end()
  const frames = await client.rest()
  const epoch = frames[0]?.id?.split('.')[0]
  for (const cursor of [`${epoch}.1`, `${epoch}.9999`, 'another.1', 'no cursor', frames.at(-1)?.id, undefined]) await (await server.rejoin({ threadId: 'thread' }, cursor)).text()
  t.strictSame(await some(server, ...['trimmed', 'ahead', 'epoch', 'invalid'].map((reason) => `stream_gaps_total{${ag},reason="${reason}"}`)), [1, 1, 1, 1])

  const tasks = await serveTasks(t, { agent, replay: { maxEvents: 16 }, host: { metrics: { path: '/metrics' } } })
  await tasks.submit('task');
  (await agent.next()).end()
  await tasks.settled('task')
  for (const id of ['9999', 'no cursor']) await (await tasks.events('task', '', { 'last-event-id': id })).text()
  t.strictSame(await some(tasks as Pick<TestServer, 'app'>, 'stream_gaps_total{protocol="agent-protocol",reason="ahead"}', 'stream_gaps_total{protocol="agent-protocol",reason="invalid"}'), [1, 1])
})

t.test('calls of the store are timed by operation and outcome', async (t) => {
  const { server, agent, plan } = await measured(t)
  plan.failBefore('runs.create')
  t.equal((await server.app.inject({ method: 'POST', url: '/agui/run', payload: request() })).statusCode, 503)
  const client = await server.run();
  (await agent.next()).end()
  await client.text()
  t.strictSame(await some(server,
    'store_call_seconds_count{operation="runs.create",outcome="failed"}', 'store_call_seconds_count{operation="runs.create",outcome="ok"}',
    'store_call_seconds_count{operation="runs.commit",outcome="ok"}', `runs_ended_total{${label},reason="not-started"}`), [1, 1, 1, 1])
})

t.test('no label is an id: agents beyond a hundred are counted together, and nothing of a request shows', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const names = Array.from({ length: 105 }, (_, index) => `agent-${index}`)
  const agent = { name: 'quick', async * stream () {} }
  await app.register(agents, { agents: Object.fromEntries(names.map((name) => [name, agent])), metrics: { path: '/metrics' }, getPrincipal: () => ({ id: 'secret-owner', tenant: 'secret-tenant' }) })
  await app.register(agUi)
  for (const name of names) await app.inject({ method: 'POST', url: `/agui/run/${name}`, payload: request({ threadId: `secret-${name}`, runId: `secret-${name}` }) })
  const samples = await scrape({ app })
  t.equal(samples[`runs_started_total{${ag},agent="other"}`], 5)
  t.equal(Object.keys(samples).filter((name) => name.startsWith('runs_started_total')).length, 101)
  t.strictSame(Object.keys(samples).filter((name) => /secret/.test(name)), [])

  // A task may name any agent: its failure is no label's.
  const server = await serveTasks(t, { agent, host: { metrics: { path: '/metrics' } } })
  for (const name of ['made up', 'agent']) {
    await server.submit(name.replace(' ', '-'), { agent_id: name })
    await server.settled(name.replace(' ', '-'))
  }
  const labels = Object.keys(await scrape(server)).flatMap((name) => /^runs_ended_total\{.*agent="([^"]*)"/.exec(name)?.[1] ?? [])
  t.strictSame(labels.sort(), ['agent', 'other'])
})

t.test('runs that were taken away, and those of dead nodes that were ended here, are counted', async (t) => {
  const { Metrics } = await import('../../../plugins/agents/metrics.ts')
  const app = Fastify()
  t.teardown(() => app.close())
  const metrics = new Metrics('/metrics')
  metrics.attach(app, { engine: { census: () => ({ pending: 0, running: 0, waiting: 0, longestQueue: 0, logBytes: 7 }) }, isAgent: () => true } as unknown as Parameters<typeof metrics.attach>[1])
  metrics.reaped({ key: { owner: {}, protocol: 'tasks', id: 'secret' } } as Parameters<typeof metrics.reaped>[0])
  const observer = metrics.starting({ id: 'secret', protocol: 'tasks', agent: 'a', isResumed: false })
  observer.running?.()
  observer.ended({ reason: 'lost' })
  const stream = metrics.streams('tasks').opened({} as never, undefined)
  stream?.gap?.('trimmed')
  stream?.closed('lagged')
  const samples = await some({ app } as Pick<TestServer, 'app'>, 'runs_reaped_total{protocol="tasks"}', 'leases_lost_total{protocol="tasks"}', 'log_bytes',
    'stream_gaps_total{protocol="tasks",reason="trimmed"}', 'streams_closed_total{protocol="tasks",outcome="lagged"}', 'streams_open{protocol="tasks"}')
  t.strictSame(samples, [1, 1, 7, 1, 1, 0])
})
