import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type RuntimeContext } from '../../../../lib/agent/index.ts'
import { publishArtifactKey, taskWorkspaceKey } from '../../../../plugins/agent-protocol/index.ts'
import { readArtifactPath } from '../../../../plugins/agent-protocol/artifact-path.ts'
import { resolveAgentProtocolOptions } from '../../../../plugins/agent-protocol/options.ts'
import { Workspaces } from '../../../../plugins/agent-protocol/workspace.ts'
import { WorkspaceSweeper } from '../../../../plugins/agent-protocol/workspace-sweeper.ts'
import { readByteRange } from '../../../../plugins/agent-protocol/byte-range.ts'
import { ScriptedAgent, type ScriptedExecution } from '../../../helpers/scripted-agent.ts'
import { buildTaskApp, type TaskApp, type TaskAppOptions } from '../../../helpers/task-app.ts'

t.test('what an agent publishes and what it writes are listed, downloaded, and each task\'s own (D21)', async (t) => {
  const { app, execution } = await running(t)
  const { context } = execution
  const published = await publish(context, { path: 'out/report.md', body: '# Report', mime: 'text/markdown' })
  t.match(published, { path: 'out/report.md', size: 8, mime: 'text/markdown', agent_created: true, sha256: sha256('# Report') })
  const directory = await context.get(taskWorkspaceKey)?.directory() ?? ''
  t.equal((await stat(directory)).mode & 0o777, 0o700)
  await writeFile(join(directory, 'notes.txt'), 'by itself')
  await symlink('/etc/passwd', join(directory, 'link'))
  const { body } = await app.ask('GET', '/tasks/t1/artifacts')
  t.match(body, { artifacts: [{ path: 'notes.txt', size: 9, mime: 'application/octet-stream' }, { path: 'out/report.md', artifact_id: published.artifact_id }] })
  t.equal((body.artifacts as unknown[]).length, 2, 'links are not followed')
  execution.finish()
  await app.settled('t1')
  const download = await app.app.inject(`/tasks/t1/artifacts/${published.artifact_id}`)
  t.equal(download.body, '# Report')
  t.match(download.headers, {
    'content-type': 'application/octet-stream',
    'content-length': 8,
    etag: `"${sha256('# Report')}"`,
    'x-content-type-options': 'nosniff',
    'content-disposition': 'attachment; filename*=UTF-8\'\'report.md',
    'accept-ranges': 'bytes'
  })
  await app.submit('t2')
  t.match((await app.ask('GET', '/tasks/t2/artifacts')).body, { artifacts: [] })
  t.match(await app.ask('GET', `/tasks/t2/artifacts/${published.artifact_id}`), { status: 404, body: { code: 'artifact_not_found' } })
})

t.test('the events of a task that is over are its run.log', async (t) => {
  const { app, execution } = await running(t, {}, { context: { detail: 'full' } })
  await execution.text('a')
  t.match((await app.ask('GET', '/tasks/t1/artifacts')).body, { artifacts: [] })
  execution.finish()
  await app.settled('t1')
  const { body } = await app.ask('GET', '/tasks/t1/artifacts')
  const [log] = body.artifacts as [{ artifact_id: string, size: number, path: string }]
  t.equal(log.path, 'run.log')
  const download = await app.app.inject(`/tasks/t1/artifacts/${log.artifact_id}`)
  const lines = download.body.trim().split('\n').map((line) => JSON.parse(line) as { seq: number, type: string })
  t.strictSame(lines.map(({ seq, type }) => [seq, type]), [[1, 'RUN_STARTED'], [2, 'TEXT_DELTA'], [3, 'RUN_FINISHED'], [4, 'STATUS']])
  t.equal(Buffer.byteLength(download.body), log.size)
})

t.test('a range, a validator and a page give parts of the whole', async (t) => {
  const { app, execution } = await running(t)
  const { artifact_id: id } = await publish(execution.context, { path: 'a.txt', body: '0123456789' })
  const part = async (headers: Record<string, string>): Promise<unknown[]> => {
    const { statusCode, body, headers: sent } = await app.app.inject({ url: `/tasks/t1/artifacts/${id}`, headers })
    return [statusCode, statusCode === 416 ? '' : body, sent['content-range']]
  }
  t.strictSame(await part({ range: 'bytes=2-4' }), [206, '234', 'bytes 2-4/10'])
  t.strictSame(await part({ range: 'bytes=7-' }), [206, '789', 'bytes 7-9/10'])
  t.strictSame(await part({ range: 'bytes=-3' }), [206, '789', 'bytes 7-9/10'])
  t.strictSame(await part({ range: 'bytes=0-99' }), [206, '0123456789', 'bytes 0-9/10'])
  t.strictSame(await part({ range: 'bytes=10-' }), [416, '', 'bytes */10'])
  t.strictSame(await part({ range: 'bytes=0-1,3-4' }), [200, '0123456789', undefined])
  t.strictSame(await part({ range: 'bytes=0-1', 'if-range': '"other"' }), [200, '0123456789', undefined])
  t.strictSame(await part({ range: 'bytes=0-1', 'if-range': `"${sha256('0123456789')}"` }), [206, '01', 'bytes 0-1/10'])
  t.strictSame(await part({ 'if-none-match': `"${sha256('0123456789')}"` }), [304, '', undefined])
  for (const path of ['b', 'c', 'd']) await publish(execution.context, { path, body: path })
  const first = (await app.ask('GET', '/tasks/t1/artifacts?limit=3')).body
  t.match(first, { artifacts: [{ path: 'a.txt' }, { path: 'b' }, { path: 'c' }], next_cursor: /./ })
  const second = (await app.ask('GET', `/tasks/t1/artifacts?limit=3&cursor=${String(first.next_cursor)}`)).body
  t.match(second, { artifacts: [{ path: 'd' }] })
  t.equal(second.next_cursor, undefined)
  t.match(await app.ask('GET', '/tasks/t1/artifacts?limit=0'), { status: 400 })
})

t.test('ranges that are none are passed over', async (t) => {
  for (const header of [undefined, '', 'bytes=-', 'bytes=a-b', 'lines=1-2', 'bytes=5-2']) t.equal(readByteRange(header, 10), undefined, header ?? 'none')
  t.equal(readByteRange('bytes=-0', 10), 'unsatisfiable')
  t.equal(readByteRange('bytes=0-', 0), 'unsatisfiable')
  t.equal(readByteRange('bytes=-5', 0), 'unsatisfiable')
})

t.test('no path leads out of a workspace', async (t) => {
  for (const path of ['', '/etc/passwd', '../x', 'a/../../x', 'a/./b', 'a//b', 'a\\b', 'a\0b', 'a\nb', '..', '.', 'x'.repeat(1_025), `${'x'.repeat(256)}/a`, '\ud800']) {
    t.throws(() => readArtifactPath(path), { code: 'AGT_ERR_TASK_INVALID_PATH' }, JSON.stringify(path))
  }
  for (const path of ['a', 'a/b.c', '...', '..a', 'ä/ö']) t.equal(readArtifactPath(path), path)
  const { app, execution } = await running(t)
  const { context } = execution
  const outside = await mkdtemp(join(tmpdir(), 'outside-'))
  t.teardown(() => rm(outside, { recursive: true }))
  const directory = await context.get(taskWorkspaceKey)?.directory() ?? ''
  await symlink(outside, join(directory, 'door'))
  await t.rejects(publish(context, { path: 'door/x', body: 'x' }), { code: 'AGT_ERR_TASK_INVALID_PATH' })
  t.strictSame(await readdir(outside), [])
  await writeFile(join(outside, 'secret'), 'x')
  t.match((await app.ask('GET', '/tasks/t1/artifacts')).body, { artifacts: [] })
  await publish(context, { path: 'file', body: 'x' })
  await t.rejects(publish(context, { path: 'file/x', body: 'x' }), { code: 'AGT_ERR_TASK_INVALID_PATH' })
  await publish(context, { path: 'folder/x', body: 'x' })
  await t.rejects(publish(context, { path: 'folder', body: 'x' }), { code: 'AGT_ERR_TASK_INVALID_PATH' })
})

t.test('what is too large is refused, and nothing of it is kept', async (t) => {
  const { app, execution } = await running(t, { maxArtifactBytes: 10, maxWorkspaceBytes: 15 })
  const { context } = execution
  await t.rejects(publish(context, { path: 'a', body: 'x'.repeat(11) }), { code: 'AGT_ERR_TASK_PAYLOAD_TOO_LARGE' })
  await publish(context, { path: 'a', body: 'x'.repeat(10) })
  await t.rejects(publish(context, { path: 'b', body: 'x'.repeat(6) }), { code: 'AGT_ERR_TASK_PAYLOAD_TOO_LARGE' })
  await publish(context, { path: 'a', body: 'x'.repeat(4) })
  await publish(context, { path: 'b', body: 'x'.repeat(6) })
  t.match((await app.ask('GET', '/tasks/t1/artifacts')).body, { artifacts: [{ path: 'a', size: 4 }, { path: 'b', size: 6 }] })
  t.match(await upload(app, 't1', 'c', 'x'.repeat(11)), { status: 413, body: { code: 'payload_too_large' } })
})

t.test('a file can be uploaded while a task is not over', async (t) => {
  const { app, execution } = await running(t)
  t.match(await upload(app, 't1', 'data.csv', 'a,b'), { status: 200, body: { path: 'data.csv', agent_created: false, size: 3, mime: 'text/plain' } })
  t.match(await upload(app, 't1', 'data.csv', 'a', 'in/'), { status: 200, body: { path: 'in/data.csv' } })
  t.match(await upload(app, 't1', 'data.csv', 'a', 'in/other.csv'), { status: 200, body: { path: 'in/other.csv' } })
  t.match(await upload(app, 't1', 'C:\\\\x\\\\data.csv', 'abc'), { status: 200, body: { path: 'data.csv' } })
  t.match(await upload(app, 't1', 'x', 'a', '../x'), { status: 400, body: { code: 'invalid_path' } })
  t.match(await app.ask('POST', '/tasks/t1/artifacts', {}), { status: 415, body: { code: 'unsupported_media_type' } })
  t.match(await upload(app, 'unknown', 'x', 'a'), { status: 404, body: { code: 'task_not_found' } })
  execution.finish()
  await app.settled('t1')
  t.match(await upload(app, 't1', 'x', 'a'), { status: 409, body: { code: 'task_finished' } })
})

t.test('files go with their task, and with a server that was given no place for them', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tasks-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const { app, execution } = await running(t, { workspaceRoot: root })
  await publish(execution.context, { path: 'a', body: 'x' })
  execution.finish()
  await app.settled('t1')
  t.equal((await readdir(root)).length, 1)
  await app.ask('DELETE', '/tasks/t1')
  t.strictSame(await readdir(root), [])
  const other = await running(t)
  const directory = await other.execution.context.get(taskWorkspaceKey)?.directory() ?? ''
  await other.app.app.close()
  await t.rejects(stat(directory), { code: 'ENOENT' })
})

t.test('files of tasks that the store has forgotten are removed, others are not', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tasks-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, workspaceRoot: root })
  const task = async (id: string): Promise<string> => {
    await app.submit(id)
    const execution = await agent.called()
    const before = await readdir(root)
    await publish(execution.context, { path: 'a', body: id })
    execution.finish()
    await app.settled(id)
    return (await readdir(root)).find((name) => !before.includes(name)) ?? ''
  }
  const forget = async (id: string): Promise<void> => {
    const record = await app.store.index.find({}, 'agent-protocol', id)
    if (record !== undefined) await app.store.runs.delete(record.key)
  }
  const kept = await task('kept')
  const gone = await task('gone')
  const first = await task('again')
  await mkdir(join(root, 'somebody-elses'))
  await forget('gone')
  await forget('again')
  const second = await task('again')
  const sweeper = (taskTtlMs: number): WorkspaceSweeper => {
    const options = resolveAgentProtocolOptions({ workspaceRoot: root })
    const made = new WorkspaceSweeper({ host: app.host, log: app.app.log, workspaces: new Workspaces(root, options), options: { ...options, taskTtlMs } })
    t.teardown(() => { made.close() })
    return made
  }
  await sweeper(86_400_000).sweep()
  t.strictSame((await readdir(root)).sort(), [kept, gone, first, second, 'somebody-elses'].sort(), 'young ones are left alone')
  const old = sweeper(0)
  await Promise.all([old.sweep(), old.sweep()])
  t.strictSame((await readdir(root)).sort(), [kept, second, 'somebody-elses'].sort())
  app.store.index.find = () => Promise.reject(new Error('away'))
  await old.sweep()
  t.ok((await readdir(root)).includes(kept), 'while the store is away nothing is gone')
})

async function running (t: Test, options: Partial<TaskAppOptions> = {}, submission: Readonly<Record<string, unknown>> = {}): Promise<{ readonly app: TaskApp, readonly execution: ScriptedExecution }> {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, host: { shutdownMs: 100 }, ...options })
  await app.submit('t1', submission)
  return { app, execution: await agent.called() }
}

async function publish (context: RuntimeContext, artifact: { readonly path: string, readonly body: string, readonly mime?: string }): Promise<{ readonly artifact_id: string }> {
  const write = context.get(publishArtifactKey)
  if (write === undefined) throw new Error('no publishArtifact')
  return await write(artifact)
}

async function upload (app: TaskApp, taskId: string, name: string, content: string, relativePath?: string): Promise<{ readonly status: number, readonly body: unknown }> {
  const field = relativePath === undefined ? '' : `--b\r\ncontent-disposition: form-data; name="relative_path"\r\n\r\n${relativePath}\r\n`
  const body = `--b\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: text/plain\r\n\r\n${content}\r\n${field}--b--\r\n`
  return await app.ask('POST', `/tasks/${taskId}/artifacts`, body, { 'content-type': 'multipart/form-data; boundary=b' })
}

function sha256 (text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
