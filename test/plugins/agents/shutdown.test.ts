import { type AddressInfo } from 'node:net'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { FaultPlan, faultyStore, memoryStore } from '../../../lib/stores/index.ts'
import { redisStore } from '../../../lib/stores/redis/index.ts'
import { agentProtocol } from '../../../plugins/agent-protocol/index.ts'
import { agUi } from '../../../plugins/ag-ui/index.ts'
import { agents } from '../../../plugins/agents/index.ts'
import { readUntil, request, serveApp, type TestServer } from '../../helpers/ag-ui-app.ts'
import { redisTests } from '../../helpers/redis-server.ts'
import { connect, type ReceivedFrame, type SseClient } from '../../helpers/sse-client.ts'
import { steered } from '../../helpers/steered-agent.ts'
import { serveTasks } from '../../helpers/task-app.ts'

/** How a stream was ended: by its terminal, or by a cursor and a time to come back at. */
function endingOf (frames: readonly ReceivedFrame[]): string {
  const last = frames.at(-1)
  if (last?.data !== undefined) return (JSON.parse(last.data) as { type: string, code?: string }).code ?? (JSON.parse(last.data) as { type: string }).type
  const told = frames.filter(({ data }) => data !== undefined)
  if (last?.retry === undefined || last.retry < 500 || last.retry > 5_000 || last.id !== told.at(-1)?.id) throw new Error(`no cursor: ${JSON.stringify(last)}`)
  return 'cursor'
}

/** Runs that talk, with their own readers and others. */
async function busy (server: TestServer, agent: ReturnType<typeof steered>): Promise<{ readonly clients: SseClient[], readonly frames: Promise<ReceivedFrame[]>[] }> {
  const clients: SseClient[] = []
  const seen: ReceivedFrame[][] = []
  for (let index = 0; index < 5; index++) {
    const client = await server.run({ threadId: `t${index}`, runId: `r${index}` });
    (await agent.next()).say('before')
    seen.push(await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT'))
    const reader = await server.rejoin({ threadId: `t${index}` })
    seen.push(await readUntil(reader, ({ type }) => type === 'TEXT_MESSAGE_CONTENT'))
    clients.push(client, reader)
  }
  return { clients, frames: clients.map(async (client, index) => [...seen[index] ?? [], ...await client.rest()]) }
}

const host = { shutdownMs: 200, storeTimeoutMs: 50 }

for (const [name, break_] of [
  ['hangs', (plan: FaultPlan) => { plan.hold('*') }],
  ['refuses everything', (plan: FaultPlan) => { plan.failBefore('*', { times: Infinity }) }],
  ['takes everything and never says so', (plan: FaultPlan) => { plan.hold('*', { moment: 'after' }) }]
] as const) {
  t.test(`closing ends in time, and each stream with a cursor or a terminal, although the store ${name}`, async (t) => {
    const plan = new FaultPlan()
    const base = memoryStore()
    t.teardown(async () => {
      plan.heal()
      await base.close()
    })
    const agent = steered()
    const server = await serveApp(t, { agent, store: { ...faultyStore(base, plan), close: async () => {} }, host })
    const { clients, frames } = await busy(server, agent)
    break_(plan)
    await server.app.close()
    const endings = (await Promise.all(frames)).map(endingOf)
    t.strictSame(clients.filter(({ complete }) => !complete), [], 'no stream is torn off')
    t.strictSame(endings.filter((ending) => ending !== 'cursor' && ending !== 'STORE_UNAVAILABLE' && ending !== 'INTERRUPTED_ERROR'), [])
    t.ok(agent.runs.every(({ context }) => context.signal.aborted))
  })
}

redisTests(t)('closing ends in time although Redis was killed', async (t, redis) => {
  const agent = steered()
  const client = redis.client({ maxRetriesPerRequest: null })
  client.on('error', () => {})
  const store = redisStore({ client, prefix: 'shutdown:' })
  const server = await serveApp(t, { agent, store, host })
  const { clients, frames } = await busy(server, agent)
  await redis.kill()
  await server.app.close()
  const endings = (await Promise.all(frames)).map(endingOf)
  t.strictSame(clients.filter(({ complete }) => !complete), [])
  t.strictSame(endings.filter((ending) => ending !== 'cursor' && ending !== 'STORE_UNAVAILABLE' && ending !== 'INTERRUPTED_ERROR'), [])
  t.ok(agent.runs.every(({ context }) => context.signal.aborted))
})

/** Waits until the server has begun to close. */
async function untilClosing ({ host: { engine } }: Pick<TestServer, 'host'>): Promise<void> {
  while (!engine.isClosing) await new Promise((resolve) => { setImmediate(resolve) })
}

/** An agent whose runs are ended by the test, over AG-UI and as a task, on a server that lets them finish. */
async function finishing (t: Test, onShutdown: 'finish' | 'interrupt') {
  const agent = steered()
  const server = await serveApp(t, { agent, host: { onShutdown, shutdownMs: 5_000 } })
  const client = await server.run()
  const run = await agent.next()
  run.say('before')
  const seen = await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  return { server, client, run, seen }
}

t.test('what runs finishes while the server closes, where that is asked for, and its reader sees all of it', async (t) => {
  const { server, client, run } = await finishing(t, 'finish')
  const closing = server.app.close()
  await untilClosing(server)
  t.equal(run.context.signal.aborted, false)
  run.say('after')
  run.end()
  t.equal(endingOf(await client.rest()), 'RUN_FINISHED')
  t.match(client.received, /before.*after/s)
  await closing
})

t.test('otherwise it is interrupted at once', async (t) => {
  const { server, client, run } = await finishing(t, 'interrupt')
  const closing = server.app.close()
  await run.over
  t.equal(run.context.signal.aborted, true)
  t.equal(endingOf(await client.rest()), 'INTERRUPTED_ERROR')
  await closing
})

t.test('a task finishes too, and its readers and waiters are told', async (t) => {
  const agent = steered()
  const server = await serveTasks(t, { agent, host: { onShutdown: 'finish' } })
  await server.submit('task')
  const run = await agent.next()
  const stream = await server.events('task')
  await stream.next()
  const waiting = server.ask('GET', '/tasks/task/wait')
  await new Promise((resolve) => { setImmediate(resolve) })
  const closing = server.app.close()
  await untilClosing(server)
  run.say('done')
  run.end()
  t.match(await stream.text(), /done/)
  t.match(await waiting, { status: 200, body: { status: 'success' } })
  await closing
})

t.test('a server that answers while it closes refuses what is new in its protocol\'s own words', async (t) => {
  // `return503OnClosing: false` leaves the answer to the routes.
  const app = Fastify({ return503OnClosing: false })
  const agent = steered()
  await app.register(agents, { agents: { agent }, onShutdown: 'finish', health: {} })
  await app.register(agUi)
  await app.register(agentProtocol)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo // it listens on TCP
  const ask = async (method: string, path: string, body?: unknown) => {
    const client = await connect(method, path, { port, ...body !== undefined && { body } })
    return { status: client.status, headers: client.headers, body: await client.json() }
  }
  t.equal((await ask('GET', '/readyz')).status, 200)
  const running = await connect('POST', '/agui/run', { port, body: request() })
  const run = await agent.next()
  const closing = app.close()
  await untilClosing({ host: app.agents })
  t.match(await ask('GET', '/readyz'), { status: 503, body: { status: 'closing' } })
  const later = { 'retry-after': /^[1-5]$/ }
  t.match(await ask('POST', '/agui/run', request({ threadId: 'other' })), { status: 503, headers: later, body: { error: { code: 'SERVICE_UNAVAILABLE' } } })
  t.match(await ask('POST', '/tasks', { task_id: 'x', agent_id: 'agent', input: 'x' }), { status: 503, headers: later, body: { code: 'closing' } })
  run.end()
  t.match(await running.text(), /RUN_FINISHED/)
  await closing
  t.equal(agent.runs.length, 1)
})
