import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type AiSdkModel } from 'fastify-agents/bridges/ai-sdk'
import { buildServer } from '../../examples/app.ts'
import { implementations } from '../helpers/example-model.ts'
import { connect } from '../helpers/sse-client.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

async function start (t: Test, model?: AiSdkModel): Promise<number> {
  const app = await buildServer({ folder: await mkdtemp(join(tmpdir(), 'example-')), logLevel: 'silent', wordMs: 0, model })
  t.teardown(() => app.close())
  await app.listen({ port: 0 })
  return (app.server.address() as AddressInfo).port
}

function ask (port: number, path: string, text: string, threadId = 't1') {
  return connect('POST', path, { port, body: { threadId, runId: 'r1', protocolVersion: '1.0', messages: [{ id: 'm1', role: 'user', content: text }] } })
}

async function typesOf (client: Awaited<ReturnType<typeof connect>>): Promise<string[]> {
  const types: string[] = []
  for await (const { data } of client.frames) if (data !== undefined) types.push((JSON.parse(data) as { type: string }).type)
  return types
}

for (const { name, model } of implementations) {
  t.test(`${name}: the calculator answers over AG-UI with thoughts, tools and text`, async (t) => {
    const port = await start(t, model())
    const types = await typesOf(await ask(port, '/agui/run', 'What is 6*7?'))
    // Texts and arguments come in as many pieces as it takes.
    t.strictSame(types.filter((type, index) => !type.endsWith('_CONTENT') && type !== types[index - 1]), [
      'RUN_STARTED', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_END',
      'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT',
      'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'RUN_FINISHED'
    ])
  })

  t.test(`${name}: a change of the files agent ends the run with an interrupt that asks for approval`, async (t) => {
    const port = await start(t, model())
    const client = await ask(port, '/agui/run/files', 'write a.txt: alpha')
    const events = (await client.text()).split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)))
    t.match(events.at(-1), { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ reason: 'tool_call', metadata: { toolName: 'write_file', toolInput: { name: 'a.txt', text: 'alpha' } } }] } })
  })
}

t.test('a topic tells what is published on it, and goes on after Last-Event-ID', async (t) => {
  const port = await start(t)
  const first = await connect('GET', '/events/orders', { port })
  const publish = async (data: unknown) => {
    const answer = await connect('POST', '/events/orders', { port, body: { event: 'order', data } })
    return JSON.parse(await answer.text()) as { seq: number }
  }
  t.strictSame(await publish({ id: 1 }), { seq: 1 })
  t.strictSame(await publish({ id: 2 }), { seq: 2 })
  const seen: (string | undefined)[][] = []
  let last = ''
  for await (const { id, event, data } of first.frames) {
    if (data === undefined) continue
    seen.push([event, data])
    last = id ?? ''
    break
  }
  t.strictSame(seen, [['order', '{"id":1}']])
  first.destroy()
  const second = await connect('GET', '/events/orders', { port, headers: { 'last-event-id': last } })
  for await (const { event, data } of second.frames) {
    if (data === undefined) continue
    t.strictSame([event, data], ['order', '{"id":2}'])
    break
  }
  second.destroy()
})

t.test('every route is described', async (t) => {
  const port = await start(t)
  const answer = await connect('GET', '/openapi.json', { port })
  const { openapi, paths } = JSON.parse(await answer.text()) as { openapi: string, paths: Record<string, Record<string, unknown>> }
  t.equal(openapi, '3.1.0')
  t.strictSame(Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`)).sort(), [
    'DELETE /tasks/{taskId}', 'GET /agents', 'GET /ap/v1/agent/tasks', 'GET /ap/v1/agent/tasks/{task_id}', 'GET /ap/v1/agent/tasks/{task_id}/artifacts',
    'GET /ap/v1/agent/tasks/{task_id}/artifacts/{artifact_id}', 'GET /ap/v1/agent/tasks/{task_id}/steps', 'GET /ap/v1/agent/tasks/{task_id}/steps/{step_id}',
    'GET /events/{topic}', 'GET /page/agents', 'GET /tasks', 'GET /tasks/{taskId}', 'GET /tasks/{taskId}/artifacts', 'GET /tasks/{taskId}/artifacts/{artifactId}',
    'GET /tasks/{taskId}/events', 'GET /tasks/{taskId}/wait', 'POST /agui/connect', 'POST /agui/connect/{agentId}', 'POST /agui/run', 'POST /agui/run/{agentId}',
    'POST /agui/stop/{threadId}', 'POST /ap/v1/agent/tasks', 'POST /ap/v1/agent/tasks/{task_id}/artifacts', 'POST /ap/v1/agent/tasks/{task_id}/steps', 'POST /events/{topic}',
    'POST /tasks', 'POST /tasks/{taskId}/artifacts', 'POST /tasks/{taskId}/cancel', 'POST /tasks/{taskId}/resume'
  ])
})

/** Runs `npm start` as a user does. */
function npmStart (t: Test, env: Record<string, string>): ChildProcess {
  const child = spawn('npm', ['start', '--silent'], { cwd: root, env: { ...process.env, LOG_LEVEL: 'silent', OPENAI_API_KEY: '', OPENAI_BASE_URL: '', MODEL: '', ...env }, detached: true })
  t.teardown(() => {
    // The whole group: npm, its shell and the server.
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  })
  return child
}

t.test('the example says that it is alive and ready, and what it does', async (t) => {
  const port = await start(t)
  for (const [path, status] of [['/livez', 'alive'], ['/readyz', 'ready']] as const) t.strictSame(await (await connect('GET', path, { port })).json(), { status })
  await (await ask(port, '/agui/run', 'What is 6*7?')).text()
  t.match(await (await connect('GET', '/metrics', { port })).text(), /fastify_agents_runs_ended_total\{protocol="ag-ui",agent="calculator",reason="completed"\} 1/)
})

t.test('npm start listens where PORT and HOST say, and ends on SIGTERM', async (t) => {
  const child = npmStart(t, { PORT: '0', HOST: '127.0.0.1' })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const [line] = await once(lines, 'line') as [string]
  const port = Number(/^fastify-agents listens on http:\/\/127\.0\.0\.1:(\d+)$/.exec(line)?.[1])
  t.ok(port > 0, line)
  t.match(await (await connect('GET', '/', { port })).text(), /<title>fastify-agents<\/title>/)
  const exit = once(child, 'exit')
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
  await exit
  lines.close()
})

t.test('npm start says in one sentence that a port is taken or is none, or what a model lacks', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  t.teardown(() => blocker.close())
  await once(blocker, 'listening')
  const { port } = blocker.address() as AddressInfo
  for (const [env, message] of [
    [{ PORT: String(port) }, `Port ${port} on 127.0.0.1 is taken. Choose another one: PORT=8081 npm start\n`],
    [{ PORT: 'abc' }, 'PORT is "abc", but a port is a number from 0 to 65535.\n'],
    [{ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }, 'OPENAI_BASE_URL is set, but not MODEL: each server has models of its own.\n']
  ] as const) {
    const child = npmStart(t, env)
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => { said += chunk.toString() })
    const [code] = await once(child, 'close') as [number]
    t.equal(code, 1)
    t.equal(said, message)
  }
})

t.test('npm start runs the agents with the model that the environment names', async (t) => {
  const requests: { url: string | undefined, key: string | undefined, model: string }[] = []
  const provider = createHttpServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => { body += chunk.toString() })
    request.on('end', () => {
      requests.push({ url: request.url, key: request.headers.authorization, model: (JSON.parse(body) as { model: string }).model })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const chunk = (delta: object, finish: string | null) => `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 0, model: 'small', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
      response.end(`${chunk({ role: 'assistant', content: 'From ' }, null)}${chunk({ content: 'the model.' }, 'stop')}data: [DONE]\n\n`)
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => provider.close())
  await once(provider, 'listening')
  const baseURL = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
  const child = npmStart(t, { PORT: '0', HOST: '127.0.0.1', OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: 'secret', MODEL: 'small' })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const [line] = await once(lines, 'line') as [string]
  lines.close()
  const port = Number(/:(\d+)$/.exec(line)?.[1])
  const answer = await (await ask(port, '/agui/run', 'Hello')).text()
  t.equal([...answer.matchAll(/"delta":"([^"]*)"/g)].map(([, delta]) => delta).join(''), 'From the model.')
  t.strictSame(requests, [{ url: '/v1/chat/completions', key: 'Bearer secret', model: 'small' }])
  const exit = once(child, 'exit')
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
  await exit
})
