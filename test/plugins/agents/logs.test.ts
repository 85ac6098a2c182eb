import t from 'tap'
import Fastify from 'fastify'
import { agUi } from '../../../plugins/ag-ui/index.ts'
import { agentProtocol } from '../../../plugins/agent-protocol/index.ts'
import { agents } from '../../../plugins/agents/index.ts'
import { request } from '../../helpers/ag-ui-app.ts'
import { scripted } from '../../helpers/steered-agent.ts'

const SECRETS = ['token-aaa', 'cookie-bbb', 'prompt-ccc', 'state-ddd', 'context-eee', 'tool-fff', 'reply-ggg', 'argument-hhh', 'owner-iii', 'tenant-jjj', 'answer-kkk', 'key-lll']

/** The whole life of a run, of a refused one and of a failed one, with secrets wherever a client or an agent can put them. */
async function logOf (level: string): Promise<Record<string, unknown>[]> {
  const lines: string[] = []
  const app = Fastify({ logger: { level, stream: { write: (line: string) => { lines.push(line) } } } })
  await app.register(agents, {
    agents: {
      asking: scripted([
        { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'reply-ggg' },
        { type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'pay', input: { to: 'argument-hhh' } }] }
      ]),
      failing: scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'reply-ggg' }], { error: new Error('the model is gone') })
    },
    defaultAgent: 'asking',
    getPrincipal: ({ headers }) => headers.authorization === undefined ? undefined : { id: 'owner-iii', tenant: 'tenant-jjj' },
    limits: { maxRuns: 3, maxStreams: 9, maxStoredBytes: 1_000_000 },
    health: {}
  })
  await app.register(agUi)
  await app.register(agentProtocol)
  const headers = { authorization: 'Bearer token-aaa', cookie: 'session=cookie-bbb', 'idempotency-key': 'key-lll' }
  const input = {
    messages: [{ id: 'u', role: 'user', content: 'prompt-ccc' }],
    state: { a: 'state-ddd' },
    context: [{ description: 'context-eee', value: 'context-eee' }],
    tools: [{ name: 'page', description: 'tool-fff', parameters: {} }],
    forwardedProps: { x: 'state-ddd' }
  }
  const post = async (url: string, payload: object, extra: object = headers) => await app.inject({ method: 'POST', url, payload, headers: extra as typeof headers })
  const first = await post('/agui/run', request(input))
  const id = /"interrupts":\[\{"id":"([^"]+)"/.exec(first.body)?.[1]
  if (id === undefined) throw new Error(first.body)
  await post('/agui/run', request({ ...input, runId: 'wrong', resume: [{ interruptId: 'x', status: 'resolved', payload: 'answer-kkk' }] }))
  await post('/agui/run', request({ ...input, runId: 'r2', resume: [{ interruptId: id, status: 'resolved', payload: { approved: true, editedArgs: { to: 'answer-kkk' } } }] }), { ...headers, 'idempotency-key': 'key-lll-2' })
  await post('/agui/run/failing', request({ ...input, threadId: 't2' }), { ...headers, 'idempotency-key': 'key-lll-3' })
  await post('/agui/connect', { threadId: 'thread' })
  await post('/agui/stop/thread', {})
  await post('/agui/run', request({ ...input, messages: 'prompt-ccc' }))
  await post('/agui/run', request(input), {})
  await app.inject({ url: '/readyz', headers })

  const task = { input: 'prompt-ccc', context: { attributes: { x: 'context-eee' }, user_id: 'owner-iii' } }
  await post('/tasks', { task_id: 'asking', agent_id: 'asking', ...task })
  await app.inject({ url: '/tasks/asking/wait', headers })
  await post('/tasks/asking/resume', { decisions: [{ tool_call_id: 'c', approved: true, edited_args: { to: 'answer-kkk' }, reason: 'answer-kkk' }] })
  await app.inject({ url: '/tasks/asking/wait?timeout_seconds=0', headers })
  await post('/tasks/asking/cancel', { reason: 'answer-kkk' })
  await post('/tasks', { task_id: 'failing', agent_id: 'failing', ...task })
  await app.inject({ url: '/tasks/failing/wait', headers })
  await app.inject({ url: '/tasks/failing/events', headers })
  await post('/tasks', { task_id: 'failing', agent_id: 'failing', input: 'prompt-ccc again' })
  await post('/tasks', { task_id: 'x', input: { nested: 'prompt-ccc' }, context: 'context-eee' })
  await post('/tasks', { task_id: 'y' }, {})
  await app.close()
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

t.test('the logs of runs hold no payload, no token and no owner, at any level', async (t) => {
  const lines = await logOf('trace')
  t.ok(lines.length >= 40, `${lines.length} lines`)
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  t.strictSame(SECRETS.filter((secret) => text.includes(secret)), [])
})

t.test('each run\'s lines say which run, protocol, agent and owner, the owner as a hash that stays the same', async (t) => {
  const lines = (await logOf('info')).filter(({ msg }) => typeof msg === 'string' && /^the run |^the agent failed/.test(msg))
  t.ok(lines.length >= 4, `${lines.length} lines`)
  for (const line of lines) {
    t.match(line, { runId: /^[0-9a-f-]{36}$/, protocol: /^(ag-ui|agent-protocol)$/, agent: /^(asking|failing|default)$/, owner: /^[\w-]{16}$/ })
  }
  t.equal(new Set(lines.map(({ owner }) => owner)).size, 1)
  t.same(new Set(lines.map(({ protocol }) => protocol)), new Set(['ag-ui', 'agent-protocol']))
})
