// What users do, over sockets, on every store.
import t, { type Test } from 'tap'
import { agentProtocol } from '../../plugins/agent-protocol/index.ts'
import { eventsOf, readUntil, serveApp, type TestServer } from '../helpers/ag-ui-app.ts'
import { checkFrames, checkShape, type WireEvent } from '../helpers/ag-ui-check.ts'
import { answer, approving, noted } from '../helpers/approving-agent.ts'
import { onEachStore, type StorePlace } from '../helpers/open-stores.ts'
import { connect, type ReceivedFrame, type SseClient } from '../helpers/sse-client.ts'
import { steered } from '../helpers/steered-agent.ts'

const LEASE_MS = 1_000

interface Service extends TestServer {
  close (): Promise<void>
  /** Ends it as a process that is killed. */
  kill (): Promise<void>
  /** Asks the task routes. */
  ask (method: string, path: string, body?: unknown): Promise<{ readonly status: number, readonly body: Record<string, unknown> }>
}

/** Makes what every server of a test serves: an agent that the test drives, and one that asks before it writes. */
function makeAgents () {
  return { talker: steered({ name: 'talker' }), tool: noted('write') }
}

type Agents = ReturnType<typeof makeAgents>

/** A server on what the place keeps, with AG-UI and tasks. */
async function serve (t: Test, place: StorePlace, { talker, tool }: Agents): Promise<Service> {
  const store = await place.open()
  const served = await serveApp(t, {
    agents: { talker, writer: approving([tool]) },
    store,
    onDisconnect: 'continue',
    host: { defaultAgent: 'talker', leaseMs: LEASE_MS },
    beside: (app) => app.register(agentProtocol)
  })
  return {
    ...served,
    async close () {
      await served.app.close()
      await store.close()
    },
    kill: () => store.cut(),
    async ask (method, path, body) {
      const client = await connect(method, path, { port: served.port, ...body !== undefined && { body } })
      const text = await client.text()
      return { status: client.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> } // the protocol's answers are objects
    }
  }
}

/** Registers a test for every store: `start` makes the next server on what is kept there. */
function scenario (name: string, body: (t: Test, scene: { readonly agents: Agents, readonly place: StorePlace, start (): Promise<Service> }) => Promise<void>): void {
  onEachStore(t, name, async (t, makePlace) => {
    const place = await makePlace()
    const agents = makeAgents()
    await body(t, { agents, place, start: () => serve(t, place, agents) })
    await place.remove()
  })
}

/** Frames up to the text. */
async function until (client: SseClient, delta: string): Promise<ReceivedFrame[]> {
  return await readUntil(client, (event) => event.type === 'TEXT_MESSAGE_CONTENT' && event.delta === delta)
}

const raw = (frames: readonly ReceivedFrame[]): string[] => frames.flatMap(({ raw, data }) => data === undefined ? [] : [raw])

const WRITE = { messages: [{ id: 'u1', role: 'user', content: 'write {"path":"a"}' }] }
const QUESTION = 'reply-u1:u1-1'

/** What a run ended with. */
const endOf = (events: readonly WireEvent[]): unknown => events.at(-1)

scenario('a stream that is cut goes on where it was, live and afterwards', async (t, { agents, start }) => {
  const server = await start()
  const caller = await server.run()
  const run = await agents.talker.next()
  run.say('one')
  const before = await until(caller, 'one')
  await caller.destroy()
  run.say('two')
  const again = await server.rejoin({ threadId: 'thread' }, before.at(-1)?.id)
  const middle = await until(again, 'two')
  run.say('three')
  run.end()
  const rest = await again.rest()
  const whole = [...before, ...middle, ...rest]
  checkFrames(whole)
  const later = await server.rejoin({ threadId: 'thread' }, before[0]?.id)
  t.same(raw(await later.rest()), raw(whole).slice(1))
  await server.close()

  const next = await start()
  const restarted = await next.rejoin({ threadId: 'thread' }, middle.at(-1)?.id)
  t.same(raw(await restarted.rest()), raw(rest), 'and over a restart')
})

scenario('a run is stopped by its thread', async (t, { agents, start }) => {
  const server = await start()
  const caller = await server.run()
  const run = await agents.talker.next()
  run.say('one')
  const before = await until(caller, 'one')
  t.same(await server.stop('thread'), { status: 200, body: { threadId: 'thread', stopped: true } })
  await run.over
  const events = checkFrames([...before, ...await caller.rest()])
  t.match(endOf(events), { type: 'RUN_FINISHED' })
  t.same(await server.stop('thread'), { status: 200, body: { threadId: 'thread', stopped: false } })
  const task = await server.ask('POST', '/tasks', { task_id: 't1', agent_id: 'talker', input: 'Hi' })
  t.match(task, { status: 200, body: { status: 'pending' } })
  await agents.talker.next()
  t.match(await server.ask('POST', '/tasks/t1/cancel'), { status: 200, body: { cancel_requested: true } })
  t.match(await server.ask('GET', '/tasks/t1/wait?timeout_seconds=10'), { body: { status: 'cancelled' } })
  await server.close()
})

scenario('an approval survives a restart, is given once, and its tool runs once', async (t, { agents, start }) => {
  const first = await start()
  const path = '/agui/run/writer'
  const asked = await eventsOf(await first.run(WRITE, { path }))
  t.match(endOf(asked), { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: QUESTION }] } })
  await first.close()

  const second = await start()
  const shown = await second.rejoin({ threadId: 'thread' }, undefined, { path: '/agui/connect/writer' })
  t.match((await shown.rest()).flatMap(({ data }) => data === undefined ? [] : [JSON.parse(data) as WireEvent]).at(-1), { outcome: { interrupts: [{ id: QUESTION }] } })
  const approval = { ...WRITE, resume: [answer(QUESTION, { approved: true })] }
  const both = await Promise.all(['two', 'three'].map(async (runId) => await (await second.run({ ...approval, runId }, { path })).rest()))
  const ends = both.map((frames) => JSON.parse(frames.findLast(({ data }) => data !== undefined)?.data ?? '{}') as WireEvent)
  t.equal(agents.tool.ran.length, 1)
  t.ok(ends.some((end) => end.type === 'RUN_FINISHED'))
  t.match(await second.ask('GET', '/tasks'), { body: { tasks: [] } })
  await second.close()
})

scenario('a task that waits survives a restart, and goes on with its answer', async (t, { agents, start }) => {
  const first = await start()
  await first.ask('POST', '/tasks', { task_id: 't1', agent_id: 'writer', input: 'write {"path":"a"}' })
  const { body } = await first.ask('GET', '/tasks/t1/wait?timeout_seconds=10')
  t.match(body, { status: 'awaiting_confirm', pending_confirms: [{ toolName: 'write' }] })
  const [pending] = body['pending_confirms'] as readonly { readonly toolCallId: string }[]
  await first.kill()

  const second = await start()
  t.match(await second.ask('GET', '/tasks/t1'), { body: { status: 'awaiting_confirm' } })
  const decisions = [{ toolCallId: pending?.toolCallId, approved: true }]
  const answers = await Promise.all([1, 2].map(() => second.ask('POST', '/tasks/t1/resume', { decisions })))
  t.equal(answers.filter(({ status }) => status === 200).length, 1, JSON.stringify(answers))
  t.match(await second.ask('GET', '/tasks/t1/wait?timeout_seconds=10'), { body: { status: 'success' } })
  t.equal(agents.tool.ran.length, 1)
  await second.close()
})

scenario('what ran when its server was killed ends within the lease, with all that was told before', async (t, { agents, place, start }) => {
  const first = await start()
  const caller = await first.run()
  const run = await agents.talker.next()
  run.say('one')
  const told = await until(caller, 'one')
  const reader = await first.rejoin({ threadId: 'thread' })
  await until(reader, 'one') // stored, that is
  await first.ask('POST', '/tasks', { task_id: 't1', agent_id: 'talker', input: 'Hi' })
  await agents.talker.next()
  await first.kill()

  const second = await start()
  const there = await second.rejoin({ threadId: 'thread' }, told[0]?.id)
  await place.advance(2 * LEASE_MS)
  const rest = await there.rest()
  t.same(raw(rest).slice(0, told.length - 1), raw(told).slice(1))
  // The terminal is of another owner, whose ids have another epoch.
  const events = [...told, ...rest.slice(told.length - 1)].flatMap(({ data }) => data === undefined ? [] : [checkShape(JSON.parse(data))])
  t.match(endOf(events), { type: 'RUN_ERROR', code: 'NODE_LOST' })
  t.match(await second.ask('GET', '/tasks/t1/wait?timeout_seconds=10'), { body: { status: 'error' } })
  await second.close()
})
