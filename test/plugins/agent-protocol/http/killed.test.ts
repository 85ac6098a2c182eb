import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { dataDir } from '../../../helpers/data-dir.ts'
import { LineChild } from '../../../helpers/line-child.ts'
import { connect } from '../../../helpers/sse-client.ts'
import { eventsUntil, taskEvents } from '../../../helpers/task-app.ts'

// Each life of the server loads everything anew.
t.setTimeout(180_000)

t.test('a killed server has lost what ran, and waits on for what it had asked, with all that was submitted (D12, D16)', async (t) => {
  const directory = await made(t)
  const first = await life(t, directory)
  await first.ask('POST', '/tasks', { task_id: 'ran', agent_id: 'slow', context: { detail: 'full' } })
  const following = await connect('GET', '/tasks/ran/events', { port: first.port })
  const told = await eventsUntil(following, ({ type }) => type === 'TEXT_DELTA')
  const context = { user_id: 'u9', session_id: 's4', detail: 'verbose', attributes: { tenant: 'blue' } }
  await first.ask('POST', '/tasks', { task_id: 'asked', agent_id: 'clerk', input: 'charge {"amount":5}', context })
  const asked = await first.ask('GET', '/tasks/asked/wait')
  t.match(asked, { status: 'awaiting_confirm', pending_confirms: [{ toolName: 'charge' }] })
  await first.child.kill()

  const second = await life(t, directory)
  t.match(await second.ask('GET', '/tasks/ran/wait'), { status: 'error', code: 'executor_lost', error: 'executor lost' })
  const all = taskEvents(await (await connect('GET', '/tasks/ran/events', { port: second.port })).rest())
  t.strictSame(all.slice(0, told.length), told, 'what was told before')
  t.strictSame(all.slice(told.length).map(({ seq, type, code }) => [seq, type, code]), [[told.length + 1, 'RUN_ERROR', 'executor_lost']], 'and its one end')
  t.strictSame(await second.ask('GET', '/tasks/asked/wait'), asked, 'the same question')
  t.match(await second.ask('POST', '/tasks', { task_id: 'asked', agent_id: 'clerk', input: 'charge {"amount":5}', context }), { status: 'awaiting_confirm', duplicate: true })
  const answers = await Promise.all(Array.from({ length: 5 }, () => second.ask('POST', '/tasks/asked/resume', yes(asked))))
  t.strictSame(answers.map(({ status, code }) => status ?? code).sort(), ['not_awaiting', 'not_awaiting', 'not_awaiting', 'not_awaiting', 'running'])
  t.match(await second.ask('GET', '/tasks/asked/wait'), { status: 'success' })
  t.strictSame(await done(directory), [[5, 'u9', 's4', { tenant: 'blue' }]], 'once, and for whom it was submitted')
  const seqs = taskEvents(await (await connect('GET', '/tasks/asked/events', { port: second.port })).rest()).map(({ seq }) => seq)
  t.strictSame(seqs, seqs.map((_, index) => index + 1), 'one dense sequence over both lives')
})

t.test('what was approved and perhaps done when the server was killed is never done again (R21)', async (t) => {
  const directory = await made(t)
  const first = await life(t, directory)
  await first.ask('POST', '/tasks', { task_id: 'asked', agent_id: 'clerk', input: 'charge {"amount":"slow"}' })
  const asked = await first.ask('GET', '/tasks/asked/wait')
  await first.ask('POST', '/tasks/asked/resume', yes(asked))
  while ((await done(directory)).length === 0) await new Promise((resolve) => { setImmediate(resolve) })
  await first.child.kill()

  const second = await life(t, directory)
  t.match(await second.ask('GET', '/tasks/asked/wait'), { status: 'error', code: 'executor_lost' })
  t.match(await second.ask('POST', '/tasks/asked/resume', yes(asked)), { code: 'not_awaiting' })
  t.match(await second.ask('POST', '/tasks', { task_id: 'asked', agent_id: 'clerk', input: 'charge {"amount":"slow"}' }), { code: 'task_finished', status: 'error', same_request: true })
  t.equal((await done(directory)).length, 1)
})

t.test('a task that had not begun, and one whose agent says that it may, are begun again by the next server', async (t) => {
  const directory = await made(t)
  const first = await life(t, directory)
  await first.ask('POST', '/tasks', { task_id: 'ran', agent_id: 'slow', context: { session_id: 's' } })
  await first.ask('POST', '/tasks', { task_id: 'queued', agent_id: 'clerk', input: 'Hi', context: { session_id: 's' } })
  await first.ask('POST', '/tasks', { task_id: 'again', agent_id: 'patient', context: { detail: 'full' } })
  const following = await connect('GET', '/tasks/again/events', { port: first.port })
  const told = await eventsUntil(following, ({ type }) => type === 'TEXT_DELTA')
  t.match(await first.ask('GET', '/tasks/queued'), { status: 'pending' })
  await first.child.kill()

  const second = await life(t, directory)
  t.match(await second.ask('GET', '/tasks/ran/wait'), { status: 'error', code: 'executor_lost' })
  t.match(await second.ask('GET', '/tasks/queued/wait'), { status: 'success', result: 'Tools: charge' })
  t.match(await second.ask('GET', '/tasks/again/wait'), { status: 'success', result: 'done' })
  const all = taskEvents(await (await connect('GET', '/tasks/again/events', { port: second.port })).rest())
  t.strictSame(all.slice(0, told.length), told)
  t.strictSame(all.map(({ seq, type }) => [seq, type]), [
    [1, 'RUN_STARTED'], [2, 'TEXT_DELTA'], [3, 'RUN_STARTED'], [4, 'TEXT_DELTA'], [5, 'RUN_FINISHED'], [6, 'STATUS']
  ], 'in one log, with one end')
})

t.test('classic tasks that were only made, and the steps of others, are there in the next life', async (t) => {
  const base = '/ap/v1/agent/tasks'
  const directory = await made(t)
  const first = await life(t, directory)
  const ids: string[] = []
  for (const input of ['made', 'charge {"amount":5}']) ids.push(String((await first.ask('POST', base, { input, additional_input: { tenant: 'blue' } })).task_id))
  const [held, stepped] = ids
  const asked = await first.ask('POST', `${base}/${stepped}/steps`)
  t.match(asked, { is_last: false, additional_output: { awaiting_confirm: true } })
  await first.child.kill()

  const second = await life(t, directory)
  t.match(await second.ask('GET', `/tasks/${held}`), { status: 'pending' })
  t.match(await second.ask('GET', `${base}/${held}`), { input: 'made', additional_input: { tenant: 'blue' } })
  t.match(await second.ask('POST', `${base}/${held}/steps`), { status: 'completed', output: 'Tools: charge', is_last: true })
  t.match(await second.ask('GET', `${base}/${stepped}/steps`), { steps: [{ step_id: asked.step_id, is_last: false }] })
  const additional = yes(asked.additional_output as Record<string, unknown>)
  t.match(await second.ask('POST', `${base}/${stepped}/steps`, { additional_input: additional }), { status: 'completed', output: 'Done.', is_last: true })
  t.strictSame(await done(directory), [[5, null, stepped, { tenant: 'blue' }]])
})

interface Life {
  readonly child: LineChild
  readonly port: number
  ask (method: 'GET' | 'POST', path: string, body?: object): Promise<Record<string, unknown>>
}

async function made (t: Test): Promise<string> {
  const directory = await dataDir(t)
  await mkdir(directory)
  return directory
}

async function life (t: Test, directory: string): Promise<Life> {
  const child = new LineChild(t, new URL('load/killable.ts', import.meta.url), [directory])
  const port = Number(await child.line())
  return {
    child,
    port,
    ask: async (method, path, body) => await (await connect(method, path, { port, ...body !== undefined && { body } })).json() as Record<string, unknown>
  }
}

function yes (asked: Record<string, unknown>): object {
  return { decisions: (asked.pending_confirms as { toolCallId: string }[]).map(({ toolCallId }) => ({ toolCallId, approved: true })) }
}

/** What was done, by whichever process. */
async function done (directory: string): Promise<unknown[]> {
  const text = await readFile(join(directory, 'done.log'), 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line !== '').map((line): unknown => JSON.parse(line))
}
