import t from 'tap'
import { textAgent } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { classicMisfit } from '../../../helpers/classic-schemas.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, type Answer, type TaskApp } from '../../../helpers/task-app.ts'

const BASE = '/ap/v1/agent/tasks'

t.test('a task is made, begun by its first step, and over after it', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  const task = valid('Task', await app.ask('POST', BASE, { input: 'Write it.', additional_input: { tone: 'dry' } }))
  t.match(task, { input: 'Write it.', additional_input: { tone: 'dry' }, artifacts: [] })
  const id = String(task.task_id)
  t.equal(agent.executions.length, 0, 'nothing runs yet')
  t.match((await app.ask('GET', `/tasks/${id}`)).body, { status: 'pending', run_count: 1 }, 'the native routes know it')
  t.match((await app.ask('GET', '/tasks?status=pending')).body, { tasks: [{ task_id: id }] })
  t.match(await app.ask('POST', `/tasks/${id}/resume`, { inputs: [{ id: 'start' }] }), { status: 409, body: { code: 'not_awaiting' } }, 'and cannot begin it')
  t.match(valid('TaskStepsListResponse', await app.ask('GET', `${BASE}/${id}/steps`)), { steps: [], pagination: { total_items: 0, total_pages: 0, current_page: 1, page_size: 10 } })

  const stepping = app.ask('POST', `${BASE}/${id}/steps`)
  const execution = await agent.called()
  t.match(execution.input, { messages: [{ role: 'USER', content: [{ type: 'text', text: 'Write it.' }] }], resume: undefined })
  t.strictSame(execution.context.attributes.get('agentprotocol.context.attributes'), { tone: 'dry' })
  await execution.text('Done.')
  execution.finish()
  const step = valid('Step', await stepping)
  t.match(step, { task_id: id, status: 'completed', output: 'Done.', is_last: true, input: null })
  t.match(valid('Step', await app.ask('GET', `${BASE}/${id}/steps/${String(step.step_id)}`)), { step_id: step.step_id, output: 'Done.' })
  t.match((await app.ask('GET', `/tasks/${id}`)).body, { status: 'success', result: 'Done.', run_count: 1 })
  t.match(valid('Step', await app.ask('POST', `${BASE}/${id}/steps`, { input: 'More.' })), { status: 'completed', output: null, is_last: true, input: 'More.' }, 'a step after the end does nothing')
  t.equal(agent.executions.length, 1)
  t.match(valid('TaskStepsListResponse', await app.ask('GET', `${BASE}/${id}/steps?page_size=1&current_page=2`)), { steps: [{ input: 'More.' }], pagination: { total_items: 2, total_pages: 2, current_page: 2, page_size: 1 } })
  const { payload } = await app.app.inject(`/tasks/${id}/events`)
  t.match(payload, /id: 1\nevent: RUN_STARTED/, 'the events begin with the agent\'s own')
})

t.test('the input of the first step wins over that of the task', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, {}))
  const stepping = app.ask('POST', `${BASE}/${String(id)}/steps`, { input: 'This.' })
  const execution = await agent.called()
  t.match(execution.input.messages, [{ content: [{ text: 'This.' }] }])
  execution.finish()
  valid('Step', await stepping)
})

t.test('a question is a step that is not the last, and the next one answers it', async (t) => {
  const tool = noted('delete')
  const app = await buildTaskApp(t, { agent: approving([tool]) })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'delete {"path":"/a"}' }))
  const asked = valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`))
  t.match(asked, { status: 'completed', is_last: false, additional_output: { awaiting_confirm: true, pending_confirms: [{ toolName: 'delete' }] } })
  t.match(valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`, { input: 'hm' })), { is_last: false }, 'a step that answers nothing asks again')
  const [{ toolCallId }] = (asked.additional_output as { pending_confirms: [{ toolCallId: string }] }).pending_confirms
  const answered = valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`, { additional_input: { decisions: [{ toolCallId, approved: true }] } }))
  t.match(answered, { status: 'completed', output: 'Done.', is_last: true })
  t.strictSame(tool.ran, [{ path: '/a' }])
})

t.test('a failure is a completed step that says so', async (t) => {
  const app = await buildTaskApp(t, { agent: textAgent(() => { throw new Error('secret') }) })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'x' }))
  t.match(valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`)), { status: 'completed', is_last: true, additional_output: { code: 'internal_error', error: /error id/ } })
})

t.test('a step that takes long is answered as running, and the next one joins it', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, stepTimeoutMs: 20 })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'x' }))
  t.match(valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`)), { status: 'running', is_last: false })
  ;(await agent.called()).finish()
  await app.settled(String(id))
  t.match(valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`)), { status: 'completed', is_last: true })
  t.equal(agent.executions.length, 1)
})

t.test('of two first steps at once one begins the task, and both tell what came of it', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'x' }))
  const steps = [1, 2].map(() => app.ask('POST', `${BASE}/${String(id)}/steps`))
  const execution = await agent.called()
  await execution.text('Done.')
  execution.finish()
  for (const step of steps) t.match(valid('Step', await step), { status: 'completed', output: 'Done.', is_last: true })
  t.equal(agent.executions.length, 1)
})

t.test('the steps of a task that was deleted are not those of the next one with its name', async (t) => {
  const app = await buildTaskApp(t, { agent: textAgent(() => 'Done.') })
  for (const input of ['first', 'second']) {
    await app.submit('t1', { input })
    await app.settled('t1')
    const { steps } = valid('TaskStepsListResponse', await app.ask('GET', `${BASE}/t1/steps`))
    t.match(steps, [{ input }])
    t.equal((steps as unknown[]).length, 1)
    valid('Step', await app.ask('POST', `${BASE}/t1/steps`, { input: 'after the end' }))
    await app.ask('DELETE', '/tasks/t1')
  }
})

t.test('native tasks are visible here, with one step for their run', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent })
  await app.submit('t1', { input: 'Hi' })
  ;(await agent.called()).finish()
  await app.settled('t1')
  t.match(valid('Task', await app.ask('GET', `${BASE}/t1`)), { task_id: 't1', input: 'Hi', artifacts: [{ file_name: 'run.log', relative_path: null }] })
  t.match(valid('TaskStepsListResponse', await app.ask('GET', `${BASE}/t1/steps`)), { steps: [{ status: 'completed', is_last: true, input: 'Hi', output: '' }] })
})

t.test('files go in and out, page by page', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent() })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'x' }))
  const uploaded = valid('Artifact', await upload(app, String(id)))
  t.match(uploaded, { agent_created: false, file_name: 'a.txt', relative_path: 'in/' })
  t.match(valid('TaskArtifactsListResponse', await app.ask('GET', `${BASE}/${String(id)}/artifacts`)), { artifacts: [{ artifact_id: uploaded.artifact_id }], pagination: { total_items: 1 } })
  const download = await app.app.inject(`${BASE}/${String(id)}/artifacts/${String(uploaded.artifact_id)}`)
  t.match(download, { statusCode: 200, body: 'hello', headers: { 'content-type': 'application/octet-stream' } })
})

t.test('tasks are paged by number', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent() })
  for (let index = 0; index < 3; index++) await app.ask('POST', BASE, { input: String(index) })
  const list = async (query: string): Promise<Record<string, unknown>> => valid('TaskListResponse', await app.ask('GET', `${BASE}${query}`))
  t.match(await list(''), { tasks: { length: 3 }, pagination: { total_items: 3, total_pages: 1, current_page: 1, page_size: 10 } })
  t.match(await list('?page_size=2'), { tasks: { length: 2 }, pagination: { total_pages: 2, page_size: 2 } })
  t.match(await list('?page_size=2&current_page=9'), { tasks: { length: 0 }, pagination: { current_page: 9 } })
})

t.test('what cannot be served has a message', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent() })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: null }))
  for (const path of ['/x', '/x/steps', '/x/artifacts', '/x/steps/y', '/x/artifacts/y', `/${String(id)}/steps/y`, `/${String(id)}/artifacts/y`]) {
    t.match(await app.ask('GET', `${BASE}${path}`), { status: 404, body: { message: /not found/ } }, path)
  }
  t.match(await app.ask('POST', `${BASE}/x/steps`, {}), { status: 404 })
  for (const query of ['page_size=0', 'page_size=x', 'current_page=-1', 'current_page=0']) t.match(await app.ask('GET', `${BASE}?${query}`), { status: 422, body: { message: /whole number/ } }, query)
  for (const body of [[], { input: 5 }, { additional_input: 'x' }]) t.match(await app.ask('POST', BASE, body), { status: 422, body: { message: /./ } })
  t.match(await app.ask('POST', BASE, '{'), { status: 400, body: { message: /./ } })
})

t.test('the classic routes can be left out, and move with the prefix', async (t) => {
  const without = await buildTaskApp(t, { agent: new ScriptedAgent(), classic: false })
  t.equal((await without.ask('POST', BASE, {})).status, 404)
  const app = await buildTaskApp(t, { agent: new ScriptedAgent(), prefix: '/work' })
  t.equal((await app.app.inject({ method: 'POST', url: `/work${BASE}`, payload: {} })).statusCode, 200)
})

t.test('a task that was only made is cancelled like any other', async (t) => {
  const app = await buildTaskApp(t, { agent: new ScriptedAgent() })
  const { task_id: id } = valid('Task', await app.ask('POST', BASE, { input: 'x' }))
  t.match((await app.ask('POST', `/tasks/${String(id)}/cancel`)).body, { status: 'cancelled' })
  t.match((await app.app.inject(`/tasks/${String(id)}/events`)).payload, /id: 1\nevent: STATUS\n.*"cancelled"/)
  t.match(valid('Step', await app.ask('POST', `${BASE}/${String(id)}/steps`)), { is_last: true, additional_output: { cancelled: true } })
})

/** The body of a success that fits its schema. */
function valid (name: string, { status, body }: Answer): Record<string, unknown> {
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
  const misfit = classicMisfit(name, body)
  if (misfit !== undefined) throw new Error(misfit)
  return body
}

async function upload (app: TaskApp, taskId: string): Promise<Answer> {
  const body = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain\r\n\r\nhello\r\n--b\r\ncontent-disposition: form-data; name="relative_path"\r\n\r\nin/\r\n--b--\r\n'
  return await app.ask('POST', `${BASE}/${taskId}/artifacts`, body, { 'content-type': 'multipart/form-data; boundary=b' })
}
