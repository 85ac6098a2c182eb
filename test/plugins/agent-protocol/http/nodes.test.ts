// Two servers on one store (D16): whichever is asked, the task is the same.
import t, { type Test } from 'tap'
import { memoryStore, wrapStore } from '../../../../lib/stores/index.ts'
import { memoryPlace } from '../../../helpers/open-stores.ts'
import { askFor, resultOf, turn } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, eventsUntil, serveTasks, taskEvents, type TaskServer, typesOf } from '../../../helpers/task-app.ts'

interface Pair {
  readonly agent: ScriptedAgent
  readonly a: TaskServer
  readonly b: TaskServer
  /** How often the store of `b` was asked for each operation. */
  readonly counts: Map<string, number>
}

async function pair (t: Test): Promise<Pair> {
  const store = memoryStore()
  t.teardown(() => store.close())
  const counts = new Map<string, number>()
  const counting = wrapStore(store, async (operation, call) => {
    counts.set(operation, (counts.get(operation) ?? 0) + 1)
    return await call()
  })
  const agent = new ScriptedAgent({ resume: true })
  const b = await serveTasks(t, { agent, store: counting })
  const a = await serveTasks(t, { agent, store, host: { shutdownMs: 500 } })
  return { agent, a, b, counts }
}

t.test('a wait and a stream at one node tell what another executes, without asking again and again (D16)', async (t) => {
  const { agent, a, b, counts } = await pair(t)
  await a.submit('t1', { context: { detail: 'full' } })
  const execution = await agent.called()
  await execution.text('one')
  t.match((await b.ask('GET', '/tasks/t1')).body, { status: 'running', run_count: 1 })
  const stream = await b.events('t1')
  await eventsUntil(stream, ({ type }) => type === 'TEXT_DELTA')
  counts.clear()
  const waiting = b.settled('t1')
  await execution.text('two')
  execution.finish()
  t.match((await waiting).body, { task_id: 't1', status: 'success', result: 'onetwo' })
  t.equal(counts.get('index.find'), 1, 'when the wait begins')
  const rest = taskEvents(await stream.rest())
  t.strictSame(rest.map(({ seq, type }) => [seq, type]), [[3, 'TEXT_DELTA'], [4, 'RUN_FINISHED'], [5, 'STATUS']])
})

t.test('a cancel at one node stops the agent on another, and says so everywhere (D1, D16)', async (t) => {
  const { agent, a, b } = await pair(t)
  await a.submit('t1')
  const execution = await agent.called()
  const streams = [await a.events('t1'), await b.events('t1')]
  const waits = [a.settled('t1'), b.settled('t1')]
  t.match(await b.ask('POST', '/tasks/t1/cancel'), { status: 200, body: { task_id: 't1', status: 'cancelled', cancel_requested: true } })
  t.equal(execution.context.signal.aborted, true)
  for (const wait of waits) t.match((await wait).body, { status: 'cancelled' })
  for (const stream of streams) t.match(taskEvents(await stream.rest()).at(-1), { type: 'STATUS', status: 'cancelled' })
  for (const node of [a, b]) t.match((await node.ask('GET', '/tasks/t1')).body, { status: 'cancelled', cancel_requested: true })
  t.match((await a.ask('POST', '/tasks/t1/cancel')).body, { status: 'cancelled', already_terminal: true })
})

t.test('what paused on one node is answered at another, in the same stream (D6, D16)', async (t) => {
  const { agent, a, b } = await pair(t)
  await a.submit('t1')
  const stream = await a.events('t1')
  const first = await agent.called()
  const waiting = b.settled('t1')
  await first.say(...askFor('c1'))
  first.finish()
  t.match((await waiting).body, { status: 'awaiting_confirm', pending_confirms: [{ toolCallId: 'c1' }] })
  await eventsUntil(stream, ({ type }) => type === 'REQUIRE_CONFIRM')
  const answers = await Promise.all([a, b, b, a].map((node) => node.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] })))
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 409, 409, 409], 'one of all answers is taken')
  for (const node of [a, b]) {
    const { body } = await node.ask('GET', '/tasks/t1')
    t.equal(body.status, 'running')
    t.equal(body.pending_confirms, undefined, 'nothing is asked twice')
  }
  const waits = [a.settled('t1'), b.settled('t1')]
  const second = await agent.called()
  await second.say(...resultOf('c1'))
  second.finish()
  for (const wait of waits) t.match((await wait).body, { status: 'success' })
  t.strictSame(taskEvents(await stream.rest()).map(({ type, seq }) => [type, seq]), [['RUN_STARTED', 6], ['TOOL_RESULT', 7], ['RUN_FINISHED', 8], ['STATUS', 9]])
  t.equal(agent.executions.length, 2)
})

t.test('a task that is submitted to both nodes at once runs once, and one session is one on both (D15, D21)', async (t) => {
  const { agent, a, b } = await pair(t)
  const answers = await Promise.all([a, b, a, b].map((node) => node.submit('t1', { context: { session_id: 's' } })))
  t.equal(answers.filter(({ status, body }) => status === 200 && body.duplicate === undefined).length, 1)
  t.ok(answers.every(({ status }) => status === 200))
  const first = await agent.called()
  await b.submit('t2', { context: { session_id: 's' } })
  t.match((await a.ask('GET', '/tasks/t2')).body, { status: 'pending' })
  const streams = [await a.events('t2'), await b.events('t2')]
  first.finish()
  const second = await agent.called()
  t.equal(second.context.runId, 't2')
  second.finish()
  for (const stream of streams) t.strictSame(typesOf(taskEvents(await stream.rest())), ['RUN_STARTED', 'RUN_FINISHED', 'STATUS'])
  t.equal(agent.executions.length, 2)
})

t.test('a node that has lost the store says so, and not that a task is lost; another one ends it (D16)', async (t) => {
  const place = memoryPlace()
  const agent = new ScriptedAgent()
  const [first, second] = [await place.open(), await place.open()]
  t.teardown(() => place.remove())
  const host = { leaseMs: 1_000, storeTimeoutMs: 500, shutdownMs: 100 }
  const a = await buildTaskApp(t, { agent, store: first, host })
  const b = await buildTaskApp(t, { agent, store: second, host })
  await a.submit('t1')
  const execution = await agent.called()
  await execution.asked()
  const waits = [a.settled('t1'), b.settled('t1')]
  await b.ask('GET', '/tasks/t1')
  await first.cut()
  await place.advance(2_000)
  t.match(await b.ask('POST', '/tasks/t1/cancel'), { status: 200, body: { status: 'error', already_terminal: true } }, 'its end came before the cancel')
  t.match((await waits[1])?.body, { status: 'error', code: 'executor_lost' })
  t.match(await waits[0], { status: 503, body: { code: 'store_unavailable' } })
  t.equal(execution.context.signal.aborted, true, 'the agent is stopped where it ran')
})

t.test('a pause whose time is over is ended by whichever node is asked for it', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const agent = new ScriptedAgent({ resume: true })
  const a = await serveTasks(t, { agent, store, confirmTtlMs: 40 })
  await a.submit('t1')
  const first = await agent.called()
  const waiting = a.settled('t1')
  await first.say(...askFor('c1'))
  first.finish()
  t.match((await waiting).body, { status: 'awaiting_confirm' })
  // Its timer goes with it.
  await a.app.close()
  const b = await buildTaskApp(t, { agent, store, confirmTtlMs: 40 })
  while ((await b.ask('GET', '/tasks/t1')).body.status === 'awaiting_confirm') await turn()
  const second = await agent.called()
  t.match(second.input.resume, [{ kind: 'confirm', toolCallId: 'c1', approved: false }])
  second.finish()
  t.match((await b.settled('t1')).body, { status: 'success' })
  t.match(await b.ask('POST', '/tasks/t1/resume', { decisions: [{ toolCallId: 'c1', approved: true }] }), { status: 409, body: { code: 'not_awaiting' } })
})

t.test('a task that is being cancelled while its node is gone is not begun again for long', async (t) => {
  const place = memoryPlace()
  const agent = new ScriptedAgent({ restartable: true })
  const [first, second] = [await place.open(), await place.open()]
  t.teardown(() => place.remove())
  const host = { leaseMs: 1_000, storeTimeoutMs: 500, shutdownMs: 100 }
  const a = await buildTaskApp(t, { agent, store: first, host })
  const b = await buildTaskApp(t, { agent, store: second, host })
  await a.submit('t1')
  const execution = await agent.called()
  await execution.asked()
  await first.cut()
  const cancelling = b.ask('POST', '/tasks/t1/cancel')
  await place.advance(2_000)
  t.match(await cancelling, { status: 200, body: { status: 'cancelled', cancel_requested: true } })
  t.match((await b.ask('GET', '/tasks/t1')).body, { status: 'cancelled' })
  t.ok(agent.executions.every(({ context }) => context.signal.aborted), 'no agent is left at work')
  const { payload } = await b.app.inject('/tasks/t1/events')
  t.match(payload, /event: STATUS\ndata: \{[^\n]*"status":"cancelled"\}\n\n$/)
})
