import t from 'tap'
import { memoryStore, wrapStore } from '../../../../lib/stores/index.ts'
import { runScript } from '../../../helpers/child.ts'
import { type Leftovers } from '../../../helpers/leaks.ts'
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

t.test('what a task costs the store does not depend on how many there were before (D4)', async (t) => {
  const counts = new Map<string, number>()
  const store = memoryStore()
  t.teardown(() => store.close())
  const counting = wrapStore(store, async (operation, call) => {
    counts.set(operation, (counts.get(operation) ?? 0) + 1)
    return await call()
  })
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, store: counting })
  app.app.log.level = 'silent'
  const costOf = async (id: string): Promise<Record<string, number>> => {
    counts.clear()
    await app.submit(id)
    const execution = await agent.called()
    await execution.asked()
    execution.finish()
    await app.settled(id)
    await app.ask('GET', `/tasks/${id}`)
    // Beats come by the clock.
    return Object.fromEntries([...counts].filter(([operation]) => !/^(leases\.(renew|expired)|nodes\.|gates\.renew)/.test(operation)).sort())
  }
  const first = await costOf('first')
  for (let index = 0; index < 300; index++) await costOf(`t${index}`)
  t.strictSame(await costOf('last'), first)
})
