import { type ServerResponse } from 'node:http'
import t from 'tap'
import { type Agent, createRuntimeContext, RunInterrupted, textOf } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks, type FakeOptions } from '../../../helpers/fake-tasks.ts'
import { decide, lines, remote, run } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'

const hello: Agent = { name: 'hello', async * stream () { yield { type: 'TEXT_BLOCK_DELTA', delta: 'Hello' } } }

/** Answers so many requests of one kind with an error. */
function failing (kind: RegExp, status: number, times: number, headers: Record<string, string> = {}): NonNullable<FakeOptions['before']> {
  let left = times
  return (request, response: ServerResponse) => {
    if (!kind.test(`${request.method} ${request.url}`) || left-- <= 0) return false
    response.writeHead(status, headers).end('{"error":"not now"}')
    return true
  }
}

for (const status of [500, 502, 503, 504, 429, 408]) {
  t.test(`a ${status} is tried again: at the submission, at the stream, at a look, at a resume (D19)`, async (t) => {
    const tool = noted('remove')
    for (const kind of [/^POST \/tasks$/, /events/, /^GET \/tasks\/[^/]+$/, /resume/]) {
      const { url, resumes } = await fakeTasks(t, approving([tool]), { before: failing(kind, status, 3, { 'retry-after': '0' }) })
      const paused = await run(remote(url), 'remove {"a":1}')
      const resumed = await run(remote(url), decide(paused.pending, true))
      t.equal(resumed.code, undefined)
      t.equal(textOf(resumed.message), 'Done.')
      t.equal(resumes.length, 1)
    }
    t.equal(tool.ran.length, 4)
  })
}

for (const status of [401, 403]) {
  t.test(`a ${status} ends the run at once, wherever it is met`, async (t) => {
    for (const kind of [/^POST \/tasks$/, /events/, /^GET \/tasks\/[^/]+$/]) {
      const { url, requests } = await fakeTasks(t, hello, { before: failing(kind, status, Infinity) })
      const { code } = await run(remote(url), 'Hi')
      t.equal(code, 'remote_unauthorized')
      t.equal(requests.filter((request) => kind.test(request)).length, 1)
    }
  })
}

t.test('a service that stays away is given up after the attempts that are allowed', async (t) => {
  const { url, requests, server } = await fakeTasks(t, hello, { before: failing(/./, 503, Infinity) })
  t.equal((await run(remote(url, { maxAttempts: 4 }), 'Hi')).code, 'remote_unreachable')
  t.equal(requests.length, 4)
  server.close()
  server.closeAllConnections()
  t.equal((await run(remote(url, { maxAttempts: 3 }), 'Hi')).code, 'remote_unreachable')
})

t.test('a refusal is final and tells its reason; a redirect is not followed', async (t) => {
  const { url, requests } = await fakeTasks(t, hello, {
    before: (request, response) => {
      if (request.method !== 'POST') return false
      response.writeHead(409).end('{"error":"busy with a question","code":"session_busy_confirm"}')
      return true
    }
  })
  t.equal((await run(remote(url), 'Hi')).code, 'session_busy_confirm')
  t.equal(requests.length, 2)
  const moved = await fakeTasks(t, hello, { before: failing(/./, 307, Infinity, { location: url }) })
  t.equal((await run(remote(moved.url, { headers: { authorization: 'secret' } }), 'Hi')).code, 'remote_refused')
  t.equal(requests.length, 2, 'the secret went nowhere else')
})

t.test('the failure of a task is the failure of the run', async (t) => {
  const { url } = await fakeTasks(t, { name: 'bad', async * stream () { throw new Error('out of paper') } })
  const context = createRuntimeContext({ sessionId: 's' })
  const failure: unknown = await (async () => { for await (const event of remote(url).stream({ messages: [], history: 'append' }, context)) t.ok(event) })().catch((error: unknown) => error)
  t.match(failure, { code: 'remote_failed', publicMessage: 'out of paper' })
})

t.test('a task that others cancel is no success', async (t) => {
  const agent = new ScriptedAgent()
  const { url, task } = await fakeTasks(t, agent)
  const running = run(remote(url), 'Hi')
  const execution = await agent.called()
  await execution.text('Hel')
  await remote(url).attach(task().id).cancel()
  t.equal((await running).code, 'remote_cancelled')
})

t.test('a task that the service has forgotten is lost, not waited for', async (t) => {
  const agent = new ScriptedAgent()
  const { url, tasks, server } = await fakeTasks(t, agent)
  const running = run(remote(url), 'Hi')
  await (await agent.called()).text('Hel')
  ;(tasks as Map<string, unknown>).clear()
  server.closeAllConnections()
  t.equal((await running).code, 'task_not_found')
})

for (const reason of [new RunInterrupted('user'), new Error('deadline')]) {
  t.test(`an abort cancels the task and waits until the service knows (${reason.name})`, async (t) => {
    const agent = new ScriptedAgent()
    const { url, task, requests } = await fakeTasks(t, agent)
    const controller = new AbortController()
    const running = run(remote(url), 'Hi', { signal: controller.signal })
    await (await agent.called()).text('Hel')
    controller.abort(reason)
    const { events, code } = await running
    t.equal(task().status, 'cancelled')
    t.equal(requests.at(-1), `POST /tasks/${task().id}/cancel`)
    if (reason instanceof RunInterrupted) t.equal(lines(events).at(-1), 'AGENT_END INTERRUPTED')
    else t.equal(code, 'Error: deadline')
  })
}

t.test('cancelling is tried again, and given up when its time is over', async (t) => {
  const agent = new ScriptedAgent()
  let isFailing = true
  const { url, task, requests } = await fakeTasks(t, agent, {
    before: (request, response) => {
      if (request.url?.endsWith('cancel') !== true) return false
      if (isFailing) response.writeHead(503).end()
      isFailing = false
      return requests.filter((line) => line.endsWith('cancel')).length !== 2
    }
  })
  const controller = new AbortController()
  const running = run(remote(url), 'Hi', { signal: controller.signal })
  await (await agent.called()).text('Hel')
  controller.abort(new RunInterrupted('user'))
  await running
  t.equal(task().status, 'cancelled')
  await t.rejects(remote(url, { cancelTimeoutMs: 50 }).attach(task().id).cancel(), { code: 'remote_unreachable' }, 'the third one has no answer')
})

t.test('who leaves in the middle cancels the task; who has it all, or a question, does not', async (t) => {
  const agent = new ScriptedAgent()
  const { url, task } = await fakeTasks(t, agent)
  const stream = remote(url).stream({ messages: [], history: 'append' }, createRuntimeContext({ sessionId: 's' }))
  const first = stream.next()
  await (await agent.called()).text('Hel')
  t.match(await first, { value: { type: 'AGENT_START' } })
  await stream.return()
  t.equal(task().status, 'cancelled')
  const asking = await fakeTasks(t, approving([noted('remove')]))
  await run(remote(asking.url), 'remove {"a":1}')
  t.ok(asking.task().isAwaiting)
  const done = await fakeTasks(t, hello)
  await run(remote(done.url), 'Hi')
  t.notOk([...asking.requests, ...done.requests].some((request) => request.endsWith('cancel')))
})

t.test('an abort while the submission is on its way takes the task back', async (t) => {
  const agent = new ScriptedAgent()
  const controller = new AbortController()
  const { url, tasks } = await fakeTasks(t, agent, {
    before: (request) => {
      if (request.url === '/tasks') setImmediate(() => { controller.abort(new RunInterrupted('user')) })
      return false
    }
  })
  await run(remote(url), 'Hi', { signal: controller.signal })
  for (const task of tasks.values()) t.equal(task.status, 'cancelled')
})

t.test('an event that is too large is given up, its task is not', async (t) => {
  const big: Agent = { name: 'big', async * stream () { yield { type: 'TEXT_BLOCK_DELTA', delta: 'x'.repeat(5_000) } } }
  const { url } = await fakeTasks(t, big, { isSlow: true })
  const { events, message, code } = await run(remote(url, { maxEventBytes: 2_048 }), 'Hi')
  t.equal(code, undefined)
  t.equal(textOf(message), 'x'.repeat(5_000))
  t.ok(lines(events).includes('CUSTOM stream_gap {"reason":"too_large"}'))
})

t.test('a stream that says nothing while the task is done is looked behind', async (t) => {
  const { url } = await fakeTasks(t, hello, {
    before: (request, response) => {
      if (request.url?.includes('/events') !== true) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return true
    }
  })
  const { events, message } = await run(remote(url, { silenceMs: 20, maxAttempts: 3 }), 'Hi')
  t.equal(textOf(message), 'Hello')
  t.ok(lines(events).includes('CUSTOM stream_gap {"reason":"cut","missed":7}'))
})

t.test('a question that the stream has not told is found by looking', async (t) => {
  const { url } = await fakeTasks(t, approving([noted('remove')]), {
    before: (request, response) => {
      if (request.url?.includes('/events') !== true) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': beat\n\n')
      const beats = setInterval(() => { response.write(': beat\n\n') }, 5)
      response.once('close', () => { clearInterval(beats) })
      return true
    }
  })
  const { pending } = await run(remote(url, { silenceMs: 20, maxAttempts: 2 }), 'remove {"file":"a"}')
  t.match(pending, [{ kind: 'confirm', toolCall: { name: 'remove', input: { file: 'a' }, content: '{"file":"a"}' } }])
})
