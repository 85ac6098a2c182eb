import t from 'tap'
import { type Agent, type AgentInput, createRuntimeContext, textOf } from '../../../../lib/agent/index.ts'
import { REMOTE_ATTRIBUTES, remoteAttributes } from '../../../../plugins/agent-protocol/client/index.ts'
import { approving, noted } from '../../../helpers/approving-agent.ts'
import { fakeTasks } from '../../../helpers/fake-tasks.ts'
import { decide, remote, run } from '../../../helpers/remote-run.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'

const hello: Agent = { name: 'hello', capabilities: { denyRules: true }, async * stream () { yield { type: 'TEXT_BLOCK_DELTA', delta: 'Hello' } } }

t.test('attributes of the agent and of the call are merged, the call wins, null is left out', async (t) => {
  const { url, task } = await fakeTasks(t, hello)
  const context = createRuntimeContext({ sessionId: 's', attributes: [[REMOTE_ATTRIBUTES, { tenant: 'acme', level: 1, none: null }]] })
  context.set(remoteAttributes, { level: 2 })
  await run(remote(url, { attributes: { region: 'cn', tenant: 'none', none: 5, list: [1, { a: null }] } }), 'Hi', context)
  t.strictSame((task().submission as { context: { attributes: unknown } }).context.attributes, { region: 'cn', tenant: 'acme', list: [1, { a: null }], level: 2 })
})

t.test('attributes that are not JSON are refused before anything is submitted', async (t) => {
  const { url, requests } = await fakeTasks(t, hello)
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  let deep: unknown = 1
  for (let level = 0; level < 20; level++) deep = [deep]
  const bad: unknown[] = [
    { a: () => {} }, { a: 1n }, { a: NaN }, { a: Infinity }, { a: [undefined] }, { a: { b: undefined } }, { a: new Date() }, { a: new Map() }, { a: Symbol('x') }, { a: 'half \ud800' },
    cyclic, { deep }, { a: 'x'.repeat(70_000) }, JSON.parse('{"a":{"__proto__":1}}'), 'text', [1]
  ]
  for (const attributes of bad) {
    t.equal((await run(remote(url), 'Hi', { attributes: [[REMOTE_ATTRIBUTES, attributes]] })).code, 'invalid_attributes')
  }
  t.strictSame(requests, [])
  t.throws(() => remote(url, { attributes: { a: (() => {}) as never } }), { code: 'AGT_ERR_OPTION_INVALID' })
})

t.test('the deny rules of the run go with the task, and bind it', async (t) => {
  const tool = noted('remove', { needsApproval: false })
  const { url, task } = await fakeTasks(t, approving([tool]))
  await run(remote(url), 'remove {"cmd":"rm -rf /"}', { denyRules: [{ tool_name: 'remove', rule_content: 'rm:*', behavior: 'deny' }, { tool_name: 'x', behavior: 'deny', source: 'policy' }] })
  t.match(task().submission, {
    context: { deny_rules: [{ tool_name: 'remove', rule_content: 'rm:*', behavior: 'DENY', source: 'parent' }, { tool_name: 'x', behavior: 'DENY', source: 'policy' }] }
  })
  t.strictSame(tool.ran, [])
})

t.test('headers are sent with every request, asked for anew each time, and are in nothing else (D17)', async (t) => {
  const tool = noted('remove')
  const { url, headers, task } = await fakeTasks(t, approving([tool]))
  let count = 0
  const agent = remote(url, { headers: async () => ({ authorization: `Bearer ${++count}` }) })
  const paused = await run(agent, 'remove {"file":"a"}')
  const resumed = await run(agent, decide(paused.pending, true))
  t.strictSame(headers.map(({ authorization }) => authorization), headers.map((_, index) => `Bearer ${index + 1}`))
  t.notMatch(JSON.stringify([paused, resumed, task().submission]), /Bearer/)
  const fixed = await fakeTasks(t, hello)
  await run(remote(fixed.url, { headers: { 'x-key': 'k' } }), 'Hi')
  t.ok(fixed.headers.every((sent) => sent['x-key'] === 'k'))
})

t.test('what is new in a conversation is the task', async (t) => {
  const { url, tasks } = await fakeTasks(t, hello)
  const message = (role: 'USER' | 'ASSISTANT' | 'SYSTEM', text: string): AgentInput['messages'][number] => ({ id: text, role, content: [{ type: 'text', text }] })
  const agent = remote(url)
  const messages = [message('USER', 'old'), message('ASSISTANT', 'answer'), message('SYSTEM', 'note'), message('USER', 'new')]
  for (const [runId, history] of [['a', 'replace'], ['b', 'append']] as const) {
    await (await agent.submit({ input: { messages, history }, context: createRuntimeContext({ sessionId: 's', runId }) })).result()
  }
  t.strictSame([...tasks.values()].map(({ submission }) => submission.input), ['note\nnew', 'old\nnote\nnew'])
})

t.test('the tasks of a session share a conversation over there where that is asked for', async (t) => {
  const { url, tasks } = await fakeTasks(t, hello)
  for (const [sessionId, runId] of [['s', 'a'], ['s', 'b'], ['other', 'c']] as const) await run(remote(url, { sessionMode: 'stable' }), 'Hi', { sessionId, runId })
  const [a, b, c] = [...tasks.values()].map(({ submission }) => (submission.context as { session_id: string }).session_id)
  t.equal(a, b)
  t.not(a, c)
  const alone = await fakeTasks(t, hello)
  await run(remote(alone.url), 'Hi')
  t.notMatch(alone.task().submission, { context: { session_id: String } })
})

t.test('who asks again for the same run attaches to its task, also in another process', async (t) => {
  const agent = new ScriptedAgent()
  const { url, requests, task } = await fakeTasks(t, agent)
  const first = run(remote(url), 'Hi')
  const execution = await agent.called()
  await execution.text('Hel')
  const second = run(remote(url), 'Hi')
  await execution.text('lo')
  execution.finish()
  const [one, two] = await Promise.all([first, second])
  t.strictSame(two.events.map(({ id, type }) => [id, type]).slice(1, -2), one.events.map(({ id, type }) => [id, type]).slice(1, -2))
  t.equal(textOf((await run(remote(url), 'Hi')).message), 'Hello', 'and after its end')
  t.equal(task().runs, 1)
  t.equal(requests.filter((request) => request === 'POST /tasks').length, 1)
})

t.test('another run, another user, another session and another input have other tasks; a cancelled one is begun anew', async (t) => {
  const { url, tasks } = await fakeTasks(t, hello)
  for (const init of [{}, { runId: 'r2' }, { userId: 'u' }, { sessionId: 't' }]) await run(remote(url), 'Hi', init)
  await run(remote(url), 'Ho')
  t.equal(tasks.size, 5)
  const agent = new ScriptedAgent()
  const slow = await fakeTasks(t, agent)
  const running = run(remote(slow.url), 'Hi')
  const [task] = [await agent.called(), slow.task()].slice(1)
  await remote(slow.url).attach((task as { id: string }).id).cancel()
  t.equal((await running).code, 'remote_cancelled')
  const again = run(remote(slow.url), 'Hi')
  ;(await agent.called()).finish()
  t.equal((await again).code, undefined)
  t.strictSame([...slow.tasks.keys()].map((id) => id.slice(-2) === '-2'), [false, true])
})

t.test('a submission whose answer was lost is no second task, also when the task is done meanwhile', async (t) => {
  let lost = 0
  const { url, tasks } = await fakeTasks(t, hello, {
    before: (request) => {
      if (request.method !== 'POST' || lost++ > 0) return false
      setImmediate(() => { request.socket.destroy() })
      return false
    }
  })
  const { message, code } = await run(remote(url), 'Hi')
  t.equal(code, undefined)
  t.equal(textOf(message), 'Hello')
  t.equal(tasks.size, 1)
})

t.test('options are checked when the agent is made', async (t) => {
  for (const options of [
    { url: 'nowhere' }, { url: 'ftp://x' }, { url: 'http://u:p@x' }, { url: 'http://x?a=b' }, { name: ' ' }, { agentId: '' }, { headers: { a: 5 } as never }, { headers: [] as never },
    { detail: 'all' as never }, { stream: 1 as never }, { askPolicy: 'ask' as never }, { sessionMode: 'x' as never }, { callTimeoutMs: 0 }, { maxAttempts: 0 }, { maxEventBytes: 1 }
  ]) {
    t.throws(() => remote('http://127.0.0.1', options), { code: 'AGT_ERR_OPTION_INVALID' }, JSON.stringify(options))
  }
  t.match(remote('http://127.0.0.1/base/', { description: 'Does' }), { name: 'worker', description: 'Does', capabilities: { resume: true, denyRules: true, restartable: true } })
})
