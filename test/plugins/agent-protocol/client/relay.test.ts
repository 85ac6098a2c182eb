import t from 'tap'
import {
  type Agent, type AgentEvent, asTool, createRuntimeContext, type Decision, pendingOf, runAgent, textOf, type Tool
} from '../../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../../lib/bridges/ai-sdk/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, inputOf, lines, remote, run } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { call, calls, says, scriptedModel } from '../../../lib/bridges/ai-sdk/scripted-model.ts'

/** A parent whose model makes one call, and then says that all is done. */
function parent (tool: Tool, input: object, id = 'p1'): Agent {
  return aiSdkAgent({ model: scriptedModel(calls(call(id, tool.name, input)), says('All done.')).model, name: 'parent', tools: [tool] })
}

t.test('a parent shows what its remote child does while it does it, under the child\'s path', async (t) => {
  const child = new ScriptedAgent()
  const { url } = await fakeTasks(t, child)
  const seen: AgentEvent[] = []
  let wake = (): void => {}
  const until = async (line: string): Promise<void> => {
    while (!lines(seen).includes(line)) await new Promise<void>((resolve) => { wake = resolve })
  }
  const running = (async () => {
    for await (const event of runAgent(parent(asTool(remote(url)), { prompt: 'go' }), inputOf('Go'), createRuntimeContext({ sessionId: 's' }))) {
      seen.push(event)
      wake()
    }
  })()
  const execution = await child.called()
  await execution.text('Look')
  await until('worker TEXT_BLOCK_DELTA Look')
  await execution.say({ type: 'TEXT_BLOCK_DELTA', delta: 'deep', source: 'inner' })
  await until('worker/inner TEXT_BLOCK_DELTA deep')
  execution.finish()
  await running
  t.strictSame(lines(seen).filter((line) => line.startsWith('worker')), [
    'worker AGENT_START', 'worker TEXT_BLOCK_START', 'worker TEXT_BLOCK_DELTA Look', 'worker/inner AGENT_START', 'worker/inner TEXT_BLOCK_START', 'worker/inner TEXT_BLOCK_DELTA deep',
    'worker/inner TEXT_BLOCK_END', 'worker/inner AGENT_END INTERRUPTED', 'worker TEXT_BLOCK_END', 'worker AGENT_RESULT', 'worker AGENT_END MODEL_STOP'
  ])
  t.ok(lines(seen).includes('TOOL_RESULT_TEXT_DELTA Look p1'))
})

for (const like of ['own', 'reference'] as const) {
  t.test(`a child's question becomes its parent's, and the parent's answer goes to the child's task (D20, ${like})`, async (t) => {
    const tool = noted('remove')
    const { url, task, resumes } = await fakeTasks(t, approving([tool]), { like, isSlow: true })
    const agent = asTool(remote(url))
    const paused = await run(parent(agent, { prompt: 'remove {"file":"a"}\nremove {"file":"b"}' }), 'Go')
    t.strictSame(lines(paused.events).filter((line) => line.includes('REQUIRE')), [
      `worker REQUIRE_USER_CONFIRM ${task().id}-u-1 remove {"file":"a"}`, `worker REQUIRE_USER_CONFIRM ${task().id}-u-2 remove {"file":"b"}`,
      `REQUIRE_USER_CONFIRM ${task().id}-u-1 remove {"file":"a"}`, `REQUIRE_USER_CONFIRM ${task().id}-u-2 remove {"file":"b"}`
    ])
    const [first, second] = decide(paused.pending, true) as [Decision, Extract<Decision, { kind: 'confirm' }>]
    // Another process: nothing is known but what the server has kept.
    const model = scriptedModel(says('All done.')).model
    const resumed = await run(aiSdkAgent({ model, name: 'parent', tools: [asTool(remote(url))] }), [first, { ...second, approved: false, reason: 'Not b.' }])
    t.equal(resumed.code, undefined)
    t.strictSame(tool.ran, [{ file: 'a' }])
    t.strictSame(resumes, [{ decisions: [{ toolCallId: `${task().id}-u-1`, approved: true }, { toolCallId: `${task().id}-u-2`, approved: false, reason: 'Not b.' }] }])
    t.ok(lines(resumed.events).includes('TOOL_RESULT_TEXT_DELTA Done. p1'))
    t.equal(textOf(resumed.message).includes('All done.'), true)
  })
}

t.test('a question for a text finds its way there and back', async (t) => {
  const child: Agent = {
    name: 'asker',
    capabilities: { resume: true },
    async * stream (input) {
      const [answer] = input.resume ?? []
      if (answer?.kind === 'input') yield { type: 'TEXT_BLOCK_DELTA', delta: `Hello ${String(answer.payload)}` }
      else yield { type: 'REQUIRE_INPUT', requests: [{ id: 'who', reason: 'input_required', message: 'Who are you?' }] }
    }
  }
  const { url, task } = await fakeTasks(t, child)
  const paused = await run(remote(url), 'Hi')
  t.match(pendingOf(paused.events), [{ kind: 'input', request: { id: new RegExp(`^${task().id}:\\d+:who$`), message: 'Who are you?' } }])
  const resumed = await run(remote(url), decide(paused.pending, true))
  t.equal(textOf(resumed.message), 'Hello yes')
})

t.test('answers given twice, by a parent that is started again, run nothing twice and bring the same result', async (t) => {
  const tool = noted('remove')
  const { url, resumes } = await fakeTasks(t, approving([tool]))
  const paused = await run(remote(url), 'remove {"file":"a"}')
  const decisions = decide(paused.pending, true)
  const first = await run(remote(url), decisions)
  const again = await run(remote(url), decisions)
  t.strictSame(lines(again.events), lines(first.events))
  t.equal(tool.ran.length, 1)
  t.equal(resumes.length, 1)
})

t.test('answers that name no task, or two, are refused', async (t) => {
  const { url } = await fakeTasks(t, approving([noted('remove')]))
  const one = await run(remote(url), 'remove {"file":"a"}', { runId: 'a' })
  const two = await run(remote(url), 'remove {"file":"a"}', { runId: 'b' })
  t.equal((await run(remote(url), [{ kind: 'confirm', toolCallId: 'c', approved: true }])).code, 'unknown_pause')
  t.equal((await run(remote(url), [...decide(one.pending, true), ...decide(two.pending, true)])).code, 'unknown_pause')
  t.equal((await run(remote(url), [{ kind: 'input', requestId: 'plain', status: 'resolved' }])).code, 'unknown_pause')
})

for (const stream of [true, false]) {
  t.test(`with the policy "deny" nobody is asked, and the task goes on (D20, streaming: ${stream})`, async (t) => {
    const tool = noted('remove')
    const { url, resumes } = await fakeTasks(t, approving([tool]))
    const { events, message, pending } = await run(remote(url, { askPolicy: 'deny', denyReason: 'Nobody is here.', stream }), 'remove {"file":"a"}')
    t.strictSame(pending, [])
    t.equal(textOf(message), 'Done.')
    t.strictSame(tool.ran, [])
    t.match(resumes, [{ decisions: [{ approved: false, reason: 'Nobody is here.' }] }])
    t.notOk(lines(events).some((line) => line.startsWith('REQUIRE')))
    if (stream) {
      t.equal(events.filter(({ type }) => type === 'AGENT_START').length, 1)
      t.ok(lines(events).some((line) => line.endsWith('denied')))
    }
  })
}

t.test('a function as policy answers by itself; what it leaves out is denied', async (t) => {
  const tool = noted('remove')
  const { url, resumes } = await fakeTasks(t, approving([tool]))
  const asked: unknown[] = []
  const { message } = await run(remote(url, {
    askPolicy: (pending, { id, signal }) => {
      asked.push([pending.length, id, signal.aborted])
      return decide(pending.slice(0, 1), true)
    }
  }), 'remove {"file":"a"}\nremove {"file":"b"}')
  t.equal(textOf(message), 'Done.')
  t.strictSame(tool.ran, [{ file: 'a' }])
  t.match(resumes, [{ decisions: [{ approved: true }, { approved: false }] }])
  t.match(asked, [[2, String, false]])
})

t.test('a task that never stops asking is given up and cancelled', async (t) => {
  let count = 0
  const child: Agent = { name: 'asker', async * stream () { yield { type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ type: 'tool_use', id: `c${count++}`, name: 'x', input: {} }] } } }
  const { url, task } = await fakeTasks(t, child)
  t.equal((await run(remote(url, { askPolicy: 'deny' }), 'Hi')).code, 'confirmation_required')
  t.equal(task().status, 'cancelled')
})
