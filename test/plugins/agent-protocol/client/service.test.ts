// Against this project's own service: what only the two of them together can show.
import t from 'tap'
import { type Agent, createRuntimeContext, RunInterrupted, textOf } from '../../../../lib/agent/index.ts'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { REMOTE_ATTRIBUTES, type RemoteAgentOptions } from '../../../../plugins/agent-protocol/client/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { decide, lines, remote, run } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { serveTasks, type TaskServer } from '../../../helpers/task-app.ts'

const at = ({ port }: TaskServer, options: Partial<RemoteAgentOptions> = {}): ReturnType<typeof remote> => remote(`http://127.0.0.1:${port}`, options)

const talker: Agent = {
  name: 'talker',
  async * stream (input) {
    yield { type: 'THINKING_BLOCK_DELTA', delta: 'hm' }
    for (const word of textOf(input.messages.at(-1)?.content ?? []).split(' ')) yield { type: 'TEXT_BLOCK_DELTA', delta: `${word} ` }
  }
}

for (const detail of ['status', 'full', 'verbose'] as const) {
  t.test(`a run at detail ${detail} has the text and the result of a local one`, async (t) => {
    const server = await serveTasks(t, { agent: talker })
    const local = await run(talker, 'one two')
    const far = await run(at(server, { detail }), 'one two')
    t.equal(far.code, undefined)
    t.equal(textOf(far.message), textOf(local.message))
    const text = (all: readonly string[]): string => all.filter((line) => line.startsWith('TEXT_BLOCK_DELTA')).map((line) => line.slice(17)).join('')
    t.equal(text(lines(far.events)), 'one two ')
    if (detail === 'verbose') t.strictSame(lines(far.events), lines(local.events))
  })
}

t.test('approvals, edits, denials with a reason and inputs reach the agent as the page decided', async (t) => {
  const tool = noted('remove')
  const server = await serveTasks(t, { agent: approving([tool]) })
  const paused = await run(at(server), 'remove {"file":"a"}\nremove {"file":"b"}')
  t.strictSame(paused.pending.map(({ kind }) => kind), ['confirm', 'confirm'])
  const [first, second] = decide(paused.pending, true)
  const { message, events } = await run(at(server), [{ ...first, editedArgs: { file: 'c' } }, { ...second, approved: false, reason: 'Keep b.' }] as never)
  t.equal(textOf(message), 'Done.')
  t.strictSame(tool.ran, [{ file: 'c' }])
  t.ok(lines(events).some((line) => line.startsWith('TOOL_RESULT_TEXT_DELTA Keep b.')))

  const asker: Agent = {
    name: 'asker',
    capabilities: { resume: true },
    async * stream (input) {
      const [answer] = input.resume ?? []
      if (answer?.kind === 'input') yield { type: 'TEXT_BLOCK_DELTA', delta: `Hello ${String(answer.payload)}` }
      else yield { type: 'REQUIRE_INPUT', requests: [{ id: 'who', reason: 'input_required' }] }
    }
  }
  for (const detail of ['status', 'verbose'] as const) {
    const asking = await serveTasks(t, { agent: asker })
    const question = await run(at(asking, { detail }), 'Hi')
    t.match(question.pending, [{ kind: 'input', request: { id: /:who$/ } }])
    t.equal(textOf((await run(at(asking, { detail }), decide(question.pending, true))).message), 'Hello yes')
  }
})

t.test('a call that is executed elsewhere is asked for here, and its result goes back', async (t) => {
  const outside = noted('measure', { needsApproval: false })
  const { execute, ...tool } = outside
  t.ok(execute)
  const server = await serveTasks(t, { agent: approving([tool]) })
  const paused = await run(at(server), 'measure {"what":"a"}')
  t.match(paused.pending, [{ kind: 'external', toolCall: { name: 'measure', input: { what: 'a' } } }])
  const [item] = paused.pending
  if (item === undefined || item.kind === 'input') return t.fail('nothing is asked')
  const resumed = await run(at(server), [{ kind: 'result', toolCallId: item.toolCall.id, output: [{ type: 'text', text: '5 m' }], state: 'success', toolCall: item.toolCall }])
  t.equal(resumed.code, undefined)
  t.ok(lines(resumed.events).some((line) => line.startsWith('TOOL_RESULT_TEXT_DELTA 5 m')))
})

t.test('attributes, user, deny rules and the shared conversation arrive', async (t) => {
  const tool = noted('remove', { needsApproval: false })
  const agent = approving([tool])
  const server = await serveTasks(t, { agent })
  await run(at(server, { sessionMode: 'stable', attributes: { region: 'cn' } }), 'remove {"cmd":"rm x"}', {
    userId: 'u', denyRules: [{ tool_name: 'remove', behavior: 'deny' }], attributes: [[REMOTE_ATTRIBUTES, { tenant: 'acme' }]]
  })
  const [context] = agent.contexts
  t.match(context, { userId: 'u', sessionId: /^session_/, denyRules: [{ tool_name: 'remove', behavior: 'deny', source: 'parent' }] })
  t.strictSame({ ...context?.attributes.get('agentprotocol.context.attributes') as object }, { region: 'cn', tenant: 'acme' })
  t.strictSame(tool.ran, [])
})

t.test('an abort stops the agent over there', async (t) => {
  const agent = new ScriptedAgent()
  const server = await serveTasks(t, { agent })
  const controller = new AbortController()
  const running = run(at(server), 'Hi', { signal: controller.signal })
  const execution = await agent.called()
  await execution.text('Hel')
  controller.abort(new RunInterrupted('user'))
  const { events } = await running
  t.equal(lines(events).at(-1), 'AGENT_END INTERRUPTED')
  await execution.returned
  t.ok(execution.context.signal.aborted)
})

t.test('a service without streams is polled, one that keeps little has a gap, and both give the result', async (t) => {
  const silent = await serveTasks(t, { agent: talker, streamingEnabled: false })
  const polled = await run(at(silent), 'one two')
  t.equal(textOf(polled.message), 'one two ')
  t.ok(lines(polled.events).includes('CUSTOM stream_gap {"reason":"unsupported"}'))
  const agent = new ScriptedAgent()
  const short = await serveTasks(t, { agent, replay: { maxEvents: 16 } })
  const task = await at(short).submit({ input: 'Hi', context: createRuntimeContext({ sessionId: 's', runId: 'r' }) })
  const execution = await agent.called()
  for (let word = 0; word < 60; word++) await execution.text(`w${word} `)
  execution.finish()
  t.match(await task.result(), { status: 'success', result: /^w0 .*w59 $/ })
  const late = await run(at(short), 'Hi')
  t.equal(late.code, undefined)
  t.match(textOf(late.message), /^w0 .*w59 $/)
})

t.test('a parent that starts again finds the task on a server that has started again', async (t) => {
  const store = memoryStore()
  t.teardown(() => store.close())
  const tool = noted('remove')
  const first = await serveTasks(t, { agent: approving([tool]), store })
  const paused = await run(at(first), 'remove {"file":"a"}')
  await first.app.close()
  const second = await serveTasks(t, { agent: approving([tool]), store })
  const again = await run(at(second), 'remove {"file":"a"}')
  t.strictSame(again.pending.map((item) => item.kind === 'confirm' && item.toolCall.id), paused.pending.map((item) => item.kind === 'confirm' && item.toolCall.id))
  const resumed = await run(at(second), decide(paused.pending, true))
  t.equal(textOf(resumed.message), 'Done.')
  t.strictSame(tool.ran, [{ file: 'a' }])
})

t.test('a token that is not right ends the run at once; tasks of others are not there', async (t) => {
  const server = await serveTasks(t, {
    agent: talker,
    getPrincipal: ({ headers }) => {
      if (headers.authorization === undefined) throw Object.assign(new Error('no'), { statusCode: 401 })
      return { id: headers.authorization }
    }
  })
  t.equal((await run(at(server), 'Hi')).code, 'remote_unauthorized')
  const mine = at(server, { headers: { authorization: 'me' } })
  const task = await mine.submit({ input: 'Hi', context: createRuntimeContext({ sessionId: 's' }) })
  t.match(await task.result(), { status: 'success' })
  await t.rejects(at(server, { headers: { authorization: 'other' } }).attach(task.id).snapshot(), { code: 'task_not_found' })
})

t.test('a second task of a conversation that waits for an answer is refused with the reason', async (t) => {
  const server = await serveTasks(t, { agent: approving([noted('remove')]) })
  await run(at(server, { sessionMode: 'stable' }), 'remove {"file":"a"}', { runId: 'one' })
  t.equal((await run(at(server, { sessionMode: 'stable' }), 'remove {"file":"b"}', { runId: 'two' })).code, 'session_busy_confirm')
})
