import t from 'tap'
import { type AgentEventInit } from '../../../lib/agent/index.ts'
import { checkOrder } from '../../helpers/ag-ui-check.ts'
import { serveApp, type AppOptions } from '../../helpers/ag-ui-app.ts'
import { steered } from '../../helpers/steered-agent.ts'
import { liveClients } from './live.ts'

const USER = { id: 'u1', role: 'user', content: 'Hi' }
const EARLIER = [{ id: 'u0', role: 'user', content: 'Before' }, { id: 'a0', role: 'assistant', content: 'Sure.' }]

/** What an agent does before somebody joins, with everything left open, and after. */
const BEFORE: readonly AgentEventInit[] = [
  { type: 'TEXT_BLOCK_DELTA', replyId: 'r0', blockId: 'text', delta: 'Closed.' },
  { type: 'TOOL_CALL_START', replyId: 'r0', toolCallId: 'done', toolCallName: 'f' },
  { type: 'TOOL_CALL_DELTA', toolCallId: 'done', delta: '{"a":1}' },
  { type: 'TOOL_CALL_END', toolCallId: 'done' },
  { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act', toolCallId: 'done', delta: 'one' },
  { type: 'TOOL_RESULT_END', replyId: 'act', toolCallId: 'done', state: 'success' },
  { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', blockId: 'text', delta: 'Text ' },
  { type: 'THINKING_BLOCK_DELTA', replyId: 'r2', blockId: 'thought', delta: 'Thought ' },
  { type: 'TOOL_CALL_START', replyId: 'r3', toolCallId: 'open', toolCallName: 'g' },
  { type: 'TOOL_CALL_DELTA', toolCallId: 'open', delta: '{"b":' },
  { type: 'TOOL_CALL_START', replyId: 'r3', toolCallId: 'ended', toolCallName: 'h' },
  { type: 'TOOL_CALL_DELTA', toolCallId: 'ended', delta: '{}' },
  { type: 'TOOL_CALL_END', toolCallId: 'ended' }
]
const AFTER: readonly AgentEventInit[] = [
  { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', blockId: 'text', delta: 'goes on.' },
  { type: 'THINKING_BLOCK_DELTA', replyId: 'r2', blockId: 'thought', delta: 'too.' },
  { type: 'TOOL_CALL_DELTA', toolCallId: 'open', delta: '2}' },
  { type: 'TOOL_CALL_END', toolCallId: 'open' },
  { type: 'TOOL_RESULT_TEXT_DELTA', replyId: 'act2', toolCallId: 'open', delta: 'two' },
  { type: 'TOOL_RESULT_END', replyId: 'act2', toolCallId: 'open', state: 'success' },
  { type: 'TEXT_BLOCK_DELTA', replyId: 'r4', blockId: 'text', delta: 'Done.' }
]
const tick: AgentEventInit = { type: 'CUSTOM', name: 'tick', value: {} }

const WAYS: Readonly<Record<string, { readonly options: AppOptions, readonly ticks: number, readonly first: string }>> = {
  'from the first frame': { options: {}, ticks: 0, first: 'TEXT_MESSAGE_START' },
  'from the snapshot of a trimmed run': { options: { replay: { maxEvents: 4 } }, ticks: 300, first: 'MESSAGES_SNAPSHOT' },
  'where the request is not repeated': { options: { echoInput: false }, ticks: 0, first: 'MESSAGES_SNAPSHOT' }
}

for (const { version, open } of liveClients) {
  for (const [way, { options, ticks, first }] of Object.entries(WAYS)) {
    t.test(`a fresh client ${version} that joins ${way} has the messages of one that watched`, async (t) => {
      const agent = steered()
      const server = await serveApp(t, { agent, enableReasoning: true, ...options })
      const base = `http://127.0.0.1:${server.port}/agui`
      const watching = open(`${base}/run`, 'thread', [...EARLIER, USER])
      const heard = watching.seen(({ type, name }) => type === 'CUSTOM' && name === 'here')
      const running = watching.run({ runId: 'run' })
      const run = await agent.next()
      run.push(...BEFORE, ...Array.from({ length: ticks }, () => tick), { type: 'CUSTOM', name: 'here', value: {} })
      await heard

      const joining = open(`${base}/connect`, 'thread')
      const caughtUp = joining.seen(({ type }) => type === 'TOOL_CALL_START')
      const joined = joining.run()
      await caughtUp
      run.push(...AFTER)
      run.end()
      await Promise.all([running, joined])
      t.equal(joining.wire[1]?.type, first)
      checkOrder(joining.wire)
      t.equal(joining.wire.at(-1)?.type, 'RUN_FINISHED')
      t.strictSame(joining.messages, watching.messages)

      const late = open(`${base}/connect`, 'thread')
      await late.run()
      checkOrder(late.wire)
      t.equal(late.wire[1]?.type, 'MESSAGES_SNAPSHOT')
      t.strictSame(late.messages, watching.messages)
      t.strictSame([...watching.warnings, ...joining.warnings, ...late.warnings], [])
    })
  }

  t.test(`a fresh client ${version} finds a failed, a stopped and an unknown thread as they are`, async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent })
    const base = `http://127.0.0.1:${server.port}/agui`
    const sessions = ['failed', 'stopped'].map((thread) => open(`${base}/run`, thread, [USER]))
    for (const session of sessions) {
      const running = session.run()
      const run = await agent.next()
      run.say('Half')
      if (session.agent.threadId === 'failed') run.fail(new Error('x'))
      else await server.stop('stopped')
      await running
      const fresh = open(`${base}/connect`, session.agent.threadId)
      await fresh.run()
      checkOrder(fresh.wire)
      t.match(fresh.wire.at(-1)?.type, session.wire.at(-1)?.type)
      t.strictSame(fresh.messages, session.messages)
      t.strictSame(fresh.warnings, [])
    }
    const fresh = open(`${base}/connect`, 'unknown')
    await fresh.run()
    checkOrder(fresh.wire)
    t.strictSame([fresh.messages, fresh.warnings, fresh.errors], [[], [], []])
  })
}
