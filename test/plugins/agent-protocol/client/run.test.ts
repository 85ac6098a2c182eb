import t from 'tap'
import { type Agent, textOf } from '../../../../lib/agent/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, lines, remote, run } from '../../../helpers/remote-run.ts'

/** Says what it was told, word by word, and thinks before. */
const echo: Agent = {
  name: 'echo',
  capabilities: { denyRules: true },
  async * stream (input) {
    yield { type: 'THINKING_BLOCK_DELTA', delta: 'hm' }
    for (const word of textOf(input.messages.at(-1)?.content ?? []).split(' ')) yield { type: 'TEXT_BLOCK_DELTA', delta: `${word} ` }
    yield { type: 'TEXT_BLOCK_DELTA', delta: 'inner', source: 'inner' }
  }
}

for (const like of ['own', 'reference'] as const) {
  t.test(`a run gives the events and the message that the agent gives locally (${like})`, async (t) => {
    const { url, task } = await fakeTasks(t, echo, { like, isSlow: true })
    const local = await run(echo, 'one two three')
    const far = await run(remote(url), 'one two three', { userId: 'u' })
    t.strictSame(lines(far.events), lines(local.events))
    t.strictSame(far.message.content, local.message.content)
    t.ok(far.events.every((event) => event.type === 'AGENT_RESULT' || event.type === 'AGENT_END' || event.type === 'AGENT_START' || (event.metadata?.taskId === task().id && event.metadata.parentSessionId === 's')))
    t.match(task().submission, { input: 'one two three', context: { user_id: 'u', parent_session_id: 's', stream: true, detail: 'verbose' } })
  })

  t.test(`a question pauses the run, and its answer goes on with the task, also in another process (${like})`, async (t) => {
    const tool = noted('remove')
    const { url, task, resumes } = await fakeTasks(t, approving([tool]), { like, isSlow: true })
    const paused = await run(remote(url), 'remove {"file":"a"}')
    t.strictSame(lines(paused.events).slice(-3), [`REQUIRE_USER_CONFIRM ${task().id}-u-1 remove {"file":"a"}`, 'AGENT_RESULT', 'AGENT_END PERMISSION_ASKING'])
    const resumed = await run(remote(url), decide(paused.pending, true, { editedArgs: { file: 'b' } }), { runId: 'r2' })
    t.equal(resumed.code, undefined)
    t.strictSame(tool.ran, [{ file: 'b' }])
    t.equal(textOf(resumed.message), 'Done.')
    t.strictSame(lines(resumed.events).filter((line) => line.startsWith('TOOL_RESULT')), [`TOOL_RESULT_START ${task().id}-u-1`, `TOOL_RESULT_TEXT_DELTA remove ok ${task().id}-u-1`, `TOOL_RESULT_END ${task().id}-u-1 success`])
    t.strictSame(resumes, [{ decisions: [{ toolCallId: `${task().id}-u-1`, approved: true, editedArgs: { file: 'b' } }] }])
  })
}
