import t, { type Test } from 'tap'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { answer, approving, noted, type NotedTool } from '../../helpers/approving-agent.ts'
import { type Page, type Runtime, serveRuntime } from './runtime.ts'

const ASK = { id: 'u1', role: 'user', content: 'del {"path":"a"}' }
const QUESTION = 'reply-u1:u1-1'

/** A page that was asked. */
async function asked (t: Test, threadId: string): Promise<{ readonly runtime: Runtime, readonly page: Page, readonly tool: NotedTool }> {
  const tool = noted('del')
  const runtime = await serveRuntime(t, await serveApp(t, { agent: approving([tool]) }))
  const page = runtime.page(threadId, [ASK])
  const last = await page.send({ runId: 'one' })
  t.match(last, { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: QUESTION, reason: 'tool_call', toolCallId: 'u1-1' }] } })
  return { runtime, page, tool }
}

t.test('shows the question with everything a page asks by', async (t) => {
  const { page, tool } = await asked(t, 'question')
  t.match(page.pendingInterrupts, [{ id: QUESTION, reason: 'tool_call', toolCallId: 'u1-1', metadata: { toolName: 'del', toolInput: { path: 'a' } }, responseSchema: { required: ['approved'] } }])
  t.strictSame(tool.ran, [])
})

t.test('passes an approval on, and the tool runs once', async (t) => {
  const { runtime, page, tool } = await asked(t, 'approve')
  t.match(await page.send({ runId: 'two', resume: [answer(QUESTION, { approved: true })] }), { type: 'RUN_FINISHED', runId: 'two' })
  t.strictSame(runtime.forwarded[1]?.resume, [answer(QUESTION, { approved: true })])
  t.match(page.transcript.slice(2), [{ role: 'tool', toolCallId: 'u1-1', content: 'del ok' }, { role: 'assistant', content: 'Done.' }])
  t.strictSame([page.transcript.length, page.pendingInterrupts, tool.ran], [4, [], [{ path: 'a' }]])
})

t.test('passes a denial and its reason on', async (t) => {
  const { page, tool } = await asked(t, 'deny')
  t.match(await page.send({ runId: 'two', resume: [answer(QUESTION, { approved: false, reason: 'wrong folder' })] }), { type: 'RUN_FINISHED' })
  t.match(page.transcript.at(2), { role: 'tool', toolCallId: 'u1-1', content: 'wrong folder' })
  t.strictSame(tool.ran, [])
})

t.test('passes edited arguments on', async (t) => {
  const { page, tool } = await asked(t, 'edit')
  await page.send({ runId: 'two', resume: [answer(QUESTION, { approved: true, editedArgs: { path: 'b' } })] })
  t.strictSame(tool.ran, [{ path: 'b' }])
})

t.test('passes on a question that was given up', async (t) => {
  const { page, tool } = await asked(t, 'cancel')
  t.match(await page.send({ runId: 'two', resume: [answer(QUESTION, undefined, 'cancelled')] }), { type: 'RUN_FINISHED' })
  t.match(page.transcript.at(2), { role: 'tool', toolCallId: 'u1-1', content: 'Permission denied by user' })
  t.strictSame(tool.ran, [])
})

t.test('runs the tool once where the page sends its answer twice over: as a tool message too, under the run it answers', async (t) => {
  const { page, tool } = await asked(t, 'double')
  page.addMessage({ id: 't1', role: 'tool', toolCallId: 'u1-1', content: '{"approved":true}' } as never)
  t.match(await page.send({ runId: 'one', resume: [answer(QUESTION, { approved: true })] }), { type: 'RUN_FINISHED', runId: 'one' })
  t.strictSame(tool.ran, [{ path: 'a' }])
  t.match(page.transcript.at(-1), { role: 'assistant', content: 'Done.' })
})

t.test('the runtime drops the protocol version, so the server speaks to an older client', async (t) => {
  const { runtime, page } = await asked(t, 'version')
  await page.send({ runId: 'two', protocolVersion: '1.0', resume: [answer(QUESTION, { approved: true })] })
  t.strictSame(runtime.forwarded.map(({ protocolVersion }) => protocolVersion), [undefined, undefined])
})
