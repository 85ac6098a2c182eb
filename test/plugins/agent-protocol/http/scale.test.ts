import t from 'tap'
import { type Store, wrapStore } from '../../../../lib/stores/index.ts'
import { parseSubmission } from '../../../../plugins/agent-protocol/submission.ts'
import { runScript } from '../../../helpers/child.ts'
import { type Leftovers } from '../../../helpers/leaks.ts'
import { onEachStore } from '../../../helpers/open-stores.ts'
import { askFor } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, serveTasks, taskEvents, typesOf } from '../../../helpers/task-app.ts'

// A machine that is busy with other files takes its time.
t.setTimeout(240_000)

t.test('ten thousand ids that nobody submitted leave nothing behind (D4)', async (t) => {
  const figures = await runScript(new URL('load/unknown-ids.ts', import.meta.url)) as Leftovers
  t.comment(JSON.stringify(figures))
  t.match(figures, { ids: 10_000, statuses: [404], runs: 0 })
  t.strictSame(figures.handles[1], figures.handles[0])
  t.equal(figures.listeners[1], figures.listeners[0])
  t.strictSame(figures.left, [], 'nothing is there more often than before')
  t.ok(figures.heapGrowth < 2 * 1024 * 1024, `the heap has grown by ${figures.heapGrowth} bytes`)
})

t.test('a thousand tasks are waited for and streamed by one process at once (D23)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, maxStreams: 2_000 })
  app.app.log.level = 'silent'
  const ids = Array.from({ length: 1_000 }, (_, index) => `t${index}`)
  await Promise.all(ids.map((id) => app.submit(id)))
  const waits = ids.map((id) => app.settled(id))
  const streams = await Promise.all(ids.map((id) => app.events(id)))
  t.ok(streams.every(({ status }) => status === 200))
  for (let index = 0; index < ids.length; index++) (await agent.called()).finish()
  const answers = await Promise.all(waits)
  t.strictSame(answers.map(({ body }) => [body.task_id, body.status]), ids.map((id) => [id, 'success']))
  const read = await Promise.all(streams.map(async (stream) => typesOf(taskEvents(await stream.rest())).join()))
  t.strictSame([...new Set(read)], ['RUN_STARTED,RUN_FINISHED,STATUS'])
})

/** Tasks that are over before the last cost is taken. */
const FINISHED: Readonly<Record<string, number>> = { memory: 100_000, lmdb: 20_000, redis: 20_000 }

onEachStore(t, 'what a task costs the store does not depend on how many there were before (D4)', async (t, makePlace, name) => {
  const place = await makePlace()
  const store = await place.open()
  const counts = new Map<string, number>()
  const counting = wrapStore(store, async (operation, call) => {
    counts.set(operation, (counts.get(operation) ?? 0) + 1)
    return await call()
  })
  const agent = new ScriptedAgent({ resume: true })
  const app = await buildTaskApp(t, { agent, store: counting })
  app.app.log.level = 'silent'
  t.teardown(async () => {
    await store.close()
    await place.remove()
  })
  const costOf = async (id: string): Promise<Record<string, number>> => {
    counts.clear()
    await app.submit(id)
    await app.submit(id)
    const first = await agent.called()
    await first.say(...askFor('c1'))
    first.finish()
    await app.settled(id)
    await app.ask('POST', `/tasks/${id}/resume`, { decisions: [{ toolCallId: 'c1', approved: true }] })
    ;(await agent.called()).finish()
    t.match((await app.settled(id)).body, { status: 'success' })
    await app.ask('GET', `/tasks/${id}`)
    await app.ask('POST', `/tasks/${id}/cancel`)
    t.match((await app.ask('GET', '/tasks?limit=5')).body, { tasks: { length: 5 } })
    // Beats come by the clock, and what goes into one append depends on the moment.
    return Object.fromEntries([...counts].filter(([operation]) => !/^(leases\.(renew|expired)|nodes\.|gates\.renew|log\.append)/.test(operation)).sort())
  }
  await finish(store, 0, 100)
  const few = await costOf('few')
  await finish(store, 100, FINISHED[name] ?? 0)
  t.strictSame(await costOf('many'), few)
  t.comment(JSON.stringify(few))
})

/** Finished tasks, as they stand in the store. */
async function finish (store: Store, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, to - start) }, async (_, index) => {
      const id = `old-${start + index}`
      const createdAt = Date.now() - 1_000_000 + start + index
      const { submission, detail } = parseSubmission({ task_id: id, input: 'x' }, false)
      const key = { owner: {}, protocol: 'agent-protocol', id }
      await store.index.add({ key, clientId: id, session: id, createdAt })
      const { record } = await store.runs.create({
        key, clientId: id, session: id, agent: 'default', state: 'running', epoch: 'e', createdAt, input: { ...submission, denyRules: [] }, detail: { detail, hasPayload: true, exposeErrors: false, sessionId: id }
      }, { node: 'old', op: id, ms: 10_000 })
      const patch = { state: 'completed' as const, end: { kind: 'completed', result: { text: 'x' } }, endedAt: createdAt, expiresAt: Date.now() + 86_400_000 }
      await store.runs.commit(key, { version: record.version, fence: record.fence, op: `end ${id}` }, { patch, firstSeq: 1, events: [], closeInterrupts: true })
    }))
  }
}
