// The example's tasks: what the README shows with curl, and what must be there at the root.
import { mkdtemp, readFile } from 'node:fs/promises'
import { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildServer } from '../../examples/app.ts'
import { connect } from '../helpers/sse-client.ts'
import { taskEvents, typesOf } from '../helpers/task-app.ts'

interface Command { readonly path: string, readonly body: string | undefined }

t.test('the README\'s walk through a task works as it stands there', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'example-tasks-'))
  const port = await start(t, folder)
  const [submit, wait, resume, events, classic, ...others] = await commands()
  t.strictSame(others, [])
  t.match(await send(port, submit), { task_id: 'shopping', status: 'pending' })
  const asked = await send(port, wait) as { readonly pending_confirms: readonly { readonly toolCallId: string }[] }
  t.match(asked, { status: 'awaiting_confirm', pending_confirms: [{ toolName: 'write_file', toolInputJson: '{"name":"shopping.txt","text":"milk"}' }] })
  const toolCallId = asked.pending_confirms[0]?.toolCallId ?? ''
  t.match(await send(port, resume, toolCallId), { status: 'running', approved: [toolCallId] })
  const stream = await connect('GET', events?.path ?? '', { port })
  const told = taskEvents(await stream.rest())
  t.strictSame(typesOf(told).filter((type) => type !== 'TEXT_DELTA'), [
    'RUN_STARTED', 'TOOL_CALL_START', 'TOOL_CALL_END', 'RUN_FINISHED', 'REQUIRE_CONFIRM', 'RUN_STARTED', 'TOOL_RESULT', 'RUN_FINISHED', 'STATUS'
  ])
  t.match(told.at(-1), { status: 'success', result: 'write_file: Wrote 4 bytes to "shopping.txt".' })
  t.equal(await readFile(join(folder, 'shopping.txt'), 'utf8'), 'milk')
  t.match(await send(port, classic), { tasks: [{ task_id: 'shopping', input: 'write shopping.txt: milk' }], pagination: { total_items: 1 } })
})

t.test('tasks go to the agent that they name, else to the default one', async (t) => {
  const port = await start(t, await mkdtemp(join(tmpdir(), 'example-tasks-')))
  t.match(await (await connect('GET', '/agents', { port })).json(), { agents: [{ agent_id: 'guide' }, { agent_id: 'calculator' }, { agent_id: 'files' }] })
  await (await connect('POST', '/tasks', { port, body: { task_id: 'sum', input: 'What is 6*7?' } })).text()
  t.match(await (await connect('GET', '/tasks/sum/wait', { port })).json(), { status: 'success', result: /42/ })
})

async function start (t: Test, folder: string): Promise<number> {
  const app = await buildServer({ folder, logLevel: 'silent', wordMs: 0 })
  t.teardown(() => app.close())
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port // listens on TCP
}

/** The README's curl commands that are about tasks. */
async function commands (): Promise<Command[]> {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  const blocks = [...readme.matchAll(/```sh\n([^`]*)```/g)].flatMap(([, block = '']) => block.includes(':8080/tasks') ? [block] : [])
  return blocks.flatMap((block) => block.split(/^curl /m).slice(1)).map((command) => ({
    path: /127\.0\.0\.1:8080([^\s']*)/.exec(command)?.[1] ?? '', body: /-d '([^']*)'/.exec(command)?.[1]
  }))
}

async function send (port: number, command: Command | undefined, toolCallId = ''): Promise<unknown> {
  const { path = '', body } = command ?? {}
  const client = await connect(body === undefined ? 'GET' : 'POST', path, { port, ...body !== undefined && { body: JSON.parse(body.replace('...', toolCallId)) as unknown } })
  return await client.json()
}
