import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { dataDir } from '../helpers/data-dir.ts'
import { LineChild } from '../helpers/line-child.ts'
import { connect } from '../helpers/sse-client.ts'

const script = new URL('../../examples/server.ts', import.meta.url)

interface WireEvent { readonly type: string, readonly [member: string]: unknown }

/** The example as a user starts it, with a data directory. */
async function start (t: Test, dataDir: string): Promise<{ readonly server: LineChild, readonly port: number, readonly line: string }> {
  const server = new LineChild(t, script, [], { PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'silent' })
  const line = await server.line()
  return { server, line, port: Number(/:(\d+)$/.exec(line)?.[1]) }
}

/** The events of a response with their ids. */
async function eventsOf (port: number, path: string, body: object, headers: Record<string, string> = {}): Promise<{ readonly ids: (string | undefined)[], readonly events: WireEvent[] }> {
  const client = await connect('POST', path, { port, body, headers })
  const ids: (string | undefined)[] = []
  const events: WireEvent[] = []
  for await (const { id, data } of client.frames) {
    if (data === undefined) continue
    ids.push(id)
    events.push(JSON.parse(data) as WireEvent)
  }
  return { ids, events }
}

const input = (threadId: string, runId: string, content: string) => ({ threadId, runId, protocolVersion: '1.0', messages: [{ id: `m-${runId}`, role: 'user', content }] })

t.test('with DATA_DIR, a server that was killed finds threads, streams and pending approvals again', { timeout: 100_000 }, async (t) => {
  const path = await dataDir(t)
  const first = await start(t, path)
  const sum = await eventsOf(first.port, '/agui/run', input('sums', 'r1', 'What is 6*7?'))
  const asked = await eventsOf(first.port, '/agui/run/files', input('files', 'r1', 'write a.txt: alpha'))
  const outcome = asked.events.at(-1)?.['outcome'] as { readonly type: string, readonly interrupts: readonly { readonly id: string }[] }
  t.equal(outcome.type, 'interrupt')
  await first.server.kill()

  const second = await start(t, path)
  const half = Math.floor(sum.ids.length / 2)
  const rest = await eventsOf(second.port, '/agui/connect', { threadId: 'sums', runId: 'r1' }, { 'last-event-id': `${sum.ids[half - 1]}` })
  t.same(rest, { ids: sum.ids.slice(half), events: sum.events.slice(half) }, 'a stream goes on after its cursor')
  const shown = await eventsOf(second.port, '/agui/connect/files', { threadId: 'files' })
  t.same(shown.events.at(-1)?.['outcome'], outcome, 'the approval is asked for as before')

  const answer = { ...input('files', 'r2', 'write a.txt: alpha'), resume: [{ interruptId: outcome.interrupts[0]?.id, status: 'resolved', payload: { approved: true } }] }
  const done = await eventsOf(second.port, '/agui/run/files', answer)
  t.match(done.events.at(-1), { type: 'RUN_FINISHED' })
  t.equal(done.events.filter(({ type }) => type === 'TOOL_CALL_RESULT').length, 1)
  t.match(await readFile(join(path, 'files', 'a.txt'), 'utf8'), /alpha/)
  const open = await eventsOf(second.port, '/agui/connect/files', { threadId: 'files' })
  t.not((open.events.at(-1)?.['outcome'] as { type?: string } | undefined)?.type, 'interrupt', 'and is not asked for any more')
})

t.test('with DATA_DIR, a server that was killed finds its tasks again: what they told, their files, and what they wait for', { timeout: 100_000 }, async (t) => {
  const path = await dataDir(t)
  const ask = async (port: number, verb: 'GET' | 'POST', route: string, body?: object): Promise<Record<string, unknown>> =>
    await (await connect(verb, route, { port, ...body !== undefined && { body } })).json() as Record<string, unknown>
  const read = async (port: number, route: string): Promise<string> => await (await connect('GET', route, { port })).text()
  const first = await start(t, path)
  await ask(first.port, 'POST', '/tasks', { task_id: 'sum', agent_id: 'calculator', input: 'What is 6*7?', context: { detail: 'verbose' } })
  await ask(first.port, 'GET', '/tasks/sum/wait')
  const told = await read(first.port, '/tasks/sum/events')
  await ask(first.port, 'POST', '/tasks', { task_id: 'list', agent_id: 'files', input: 'write list.txt: beta' })
  const form = '--b\r\ncontent-disposition: form-data; name="file"; filename="notes.txt"\r\n\r\nkept\r\n--b--\r\n'
  const upload = await connect('POST', '/tasks/list/artifacts', { port: first.port, body: form, headers: { 'content-type': 'multipart/form-data; boundary=b' } })
  const { artifact_id: artifactId } = await upload.json() as { artifact_id: string }
  const asked = await ask(first.port, 'GET', '/tasks/list/wait')
  t.equal(asked['status'], 'awaiting_confirm')
  await first.server.kill()

  const second = await start(t, path)
  t.equal(await read(second.port, '/tasks/sum/events'), told, 'byte for byte')
  t.match(await ask(second.port, 'GET', '/tasks/list/wait'), asked)
  t.equal(await read(second.port, `/tasks/list/artifacts/${artifactId}`), 'kept')
  const decisions = (asked['pending_confirms'] as { toolCallId: string }[]).map(({ toolCallId }) => ({ toolCallId, approved: true }))
  t.match(await ask(second.port, 'POST', '/tasks/list/resume', { decisions }), { status: 'running' })
  t.match(await ask(second.port, 'GET', '/tasks/list/wait'), { status: 'success' })
  t.equal(await readFile(join(path, 'files', 'list.txt'), 'utf8'), 'beta')
  t.match(await ask(second.port, 'POST', '/tasks/list/resume', { decisions }), { code: 'not_awaiting' })
})

t.test('a second server on the same DATA_DIR says in one sentence that it is taken', async (t) => {
  const path = await dataDir(t)
  const first = await start(t, path)
  t.ok(first.port > 0, first.line)
  const second = new LineChild(t, script, [], { PORT: '0', DATA_DIR: path, LOG_LEVEL: 'silent' })
  t.equal(await second.line(), '', 'it never listens')
  await second.kill()
  t.equal(second.process.exitCode, 1)
})
