import t from 'tap'
import { type AgentEventInit } from '../../../../lib/agent/index.ts'
import { typesOf } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, serveApp, snapshotOf } from '../../../helpers/ag-ui-app.ts'
import { scripted } from '../../../helpers/steered-agent.ts'

const ASKING: readonly AgentEventInit[] = [
  { type: 'TOOL_CALL_START', replyId: 'r1', toolCallId: 'c1', toolCallName: 'delete' },
  { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"path":"a"}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  { type: 'REQUIRE_USER_CONFIRM', replyId: 'r1', toolCalls: [{ type: 'tool_use', id: 'c1', name: 'delete', input: { path: 'a' } }] }
]

t.test('an answer to nothing is refused in the stream, and no agent is asked', async (t) => {
  const agent = scripted([])
  const server = await serveApp(t, { agent })
  const events = await eventsOf(await server.run({ messages: [], resume: [{ interruptId: 'i1', status: 'resolved', payload: { approved: true } }] }), { ids: false })
  t.strictSame(typesOf(events), ['RUN_STARTED', 'RUN_ERROR'])
  t.match(events[1], { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: /no open interrupt.*i1/, timestamp: Number })
  t.strictSame([agent.calls, await server.runIds()], [[], []])
})

t.test('an empty resume counts as none', async (t) => {
  const server = await serveApp(t, { agent: scripted([]) })
  t.equal((await eventsOf(await server.run({ resume: [] }))).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a run that needs an approval ends with it, and the thread takes no run that leaves it open', async (t) => {
  const agent = scripted(ASKING)
  const server = await serveApp(t, { agent })
  const events = await eventsOf(await server.run())
  t.match(events.at(-1), { type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [{ id: 'r1:c1', reason: 'tool_call', toolCallId: 'c1', metadata: { toolName: 'delete', toolInput: { path: 'a' } } }] } })
  t.notMatch(JSON.stringify(events), /TOOL_CALL_RESULT|null/)

  for (const input of [{ runId: 'next' }, { runId: 'next', resume: [] }, { messages: [] }]) {
    const refused = await eventsOf(await server.run(input), { ids: false })
    t.match(refused.at(-1), { type: 'RUN_ERROR', code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: /unresolved interrupts.*r1:c1/ })
  }
  t.equal(agent.calls.length, 1)
  t.strictSame((await server.host.engine.openInterrupts({}, 'ag-ui', 'thread')).map(({ id, state }) => [id, state]), [['r1:c1', 'open']])

  // The same request again shows the question again, and so does a page that was loaded anew.
  t.strictSame(await eventsOf(await server.run()), events)
  t.match((await snapshotOf(await server.rejoin({ threadId: 'thread' }))).at(-1), { outcome: { type: 'interrupt', interrupts: [{ id: 'r1:c1' }] } })
  // Another thread is not concerned.
  t.match((await eventsOf(await server.run({ threadId: 'other' }))).at(-1), { outcome: { type: 'interrupt' } })
})
