// A page, its agent, that agent's remote agent, and that one's: a question at the bottom is answered at the top.
import t, { type Test } from 'tap'
import { type Agent, asTool } from '../../../lib/agent/index.ts'
import { aiSdkAgent } from '../../../lib/bridges/ai-sdk/index.ts'
import { serveApp } from '../../helpers/ag-ui-app.ts'
import { checkOrder } from '../../helpers/ag-ui-check.ts'
import { answer, approving, noted, type NotedTool } from '../../helpers/approving-agent.ts'
import { chaosProxy } from '../../helpers/chaos-proxy.ts'
import { remote } from '../../helpers/remote-run.ts'
import { serveTasks, type TaskServer } from '../../helpers/task-app.ts'
import { call, calls, says, scriptedModel } from '../../lib/bridges/ai-sdk/scripted-model.ts'
import { liveClients, type LiveClient, type Session } from './live.ts'

// A machine that is busy with other files takes its time.
t.setTimeout(300_000)

/** An agent whose model hands its work to one tool, and says what it is told to when that is done. */
function boss (name: string, callId: string, staff: Agent, prompt: string, last: string): Agent {
  return aiSdkAgent({ model: scriptedModel(calls(call(callId, staff.name, { prompt })), says(last)).model, name, tools: [asTool(staff)] })
}

interface Chain { readonly session: Session, readonly tool: NotedTool, readonly middle: TaskServer, readonly bottom: TaskServer }

/** Three servers and a client before them; with a seed, on networks that lose, cut and repeat. */
async function chain (t: Test, { open }: LiveClient, seed?: number): Promise<Chain> {
  const tool = noted('del')
  const address = async ({ port }: TaskServer): Promise<string> => seed === undefined ? `http://127.0.0.1:${port}` : (await chaosProxy(t, { port }, { seed })).url
  const impatient = seed === undefined ? {} : { idleMs: 200, silenceMs: 80, callTimeoutMs: 200 }
  const bottom = await serveTasks(t, { agent: approving([tool]) })
  const fetcher = remote(await address(bottom), { name: 'fetcher', description: 'Fetches', agentId: 'agent', ...impatient })
  const middle = await serveTasks(t, { agents: { researcher: boss('researcher', 'm1', fetcher, 'del {"path":"a"}', 'It is fetched.') } })
  const researcher = remote(await address(middle), { name: 'researcher', description: 'Researches', ...impatient })
  const top = await serveApp(t, { agent: boss('assistant', 'p1', researcher, 'Look it up', 'All is done.') })
  return { session: open(`http://127.0.0.1:${top.port}/agui/run`, 'thread', [{ id: 'u1', role: 'user', content: 'Go' }]), tool, middle, bottom }
}

function texts (session: Session): string[] {
  return session.wire.flatMap((event) => {
    const value = event as { type: string, name?: string, delta?: string, value?: { source?: string, delta?: string, toolName?: string, state?: string, toolCallCount?: number } }
    if (value.type === 'TEXT_MESSAGE_CONTENT') return [`: ${value.delta}`]
    if (value.type !== 'CUSTOM' || value.name?.startsWith('subagent.') !== true || value.name === 'subagent.lifecycle') return []
    const { source, delta, toolName, state, toolCallCount } = value.value ?? {}
    return [`${source}: ${value.name.slice(9)} ${delta ?? state ?? toolName ?? toolCallCount}`]
  })
}

/** Who raises a child's question names the call that it is about: the normaliser tells it as its own. */
const asked = [
  'researcher: tool_call fetcher', 'researcher: tool_call fetcher', 'researcher/fetcher: tool_call del', 'researcher/fetcher: tool_call del', 'researcher/fetcher: require_confirm 1',
  'researcher: tool_result running', 'researcher: tool_call del', 'researcher: tool_call del', 'researcher: require_confirm 1'
]

for (const client of liveClients) {
  t.test(`client ${client.version}: a question three levels down is asked on the page, and the answer reaches the tool once`, async (t) => {
    const { session, tool, middle, bottom } = await chain(t, client)
    await session.run({ runId: 'one' })
    checkOrder(session.wire)
    t.strictSame(texts(session), asked)
    const [interrupt, ...others] = session.agent.pendingInterrupts as unknown as { id: string, toolCallId: string, metadata: unknown }[]
    t.strictSame(others, [])
    t.match(interrupt, { metadata: { toolName: 'del', toolInput: { path: 'a' } } })
    t.strictSame(tool.ran, [])

    await session.run({ runId: 'two', resume: [answer(interrupt?.id ?? '', { approved: true, editedArgs: { path: 'b' } })] })
    checkOrder(session.wire)
    t.match(session.wire.at(-1), { type: 'RUN_FINISHED' })
    t.strictSame(tool.ran, [{ path: 'b' }])
    t.ok(texts(session).includes('researcher/fetcher: text Done.'))
    t.ok(texts(session).includes('researcher: text It is fetched.'))
    t.equal(texts(session).at(-1), ': All is done.')
    t.match(session.messages.at(-1), { role: 'assistant', content: 'All is done.' })
    t.strictSame([session.agent.pendingInterrupts, session.errors, session.warnings], [[], [], []])
    for (const { host, store } of [middle, bottom]) {
      t.ok(host)
      t.strictSame((await store.index.list({}, { protocol: 'agent-protocol', limit: 10 })).runs.length, 1, 'one task, in two executions')
    }
  })
}

const newest = liveClients.at(-1)

t.test('a refusal at the top is the bottom\'s, with its reason', async (t) => {
  if (newest === undefined) return t.fail('there is no client')
  const { session, tool } = await chain(t, newest)
  await session.run({ runId: 'one' })
  const [interrupt] = session.agent.pendingInterrupts as unknown as { id: string }[]
  await session.run({ runId: 'two', resume: [answer(interrupt?.id ?? '', { approved: false, reason: 'Not this one.' })] })
  t.strictSame(tool.ran, [])
  t.ok(texts(session).includes('researcher/fetcher: tool_result denied'))
  t.equal(texts(session).at(-1), ': All is done.')
})

for (const seed of [1, 2, 3]) {
  t.test(`bad networks between all of them change nothing that the page sees (seed ${seed})`, async (t) => {
    if (newest === undefined) return t.fail('there is no client')
    const { session, tool } = await chain(t, newest, seed)
    await session.run({ runId: 'one' })
    t.strictSame(texts(session), asked)
    const [interrupt] = session.agent.pendingInterrupts as unknown as { id: string }[]
    await session.run({ runId: 'two', resume: [answer(interrupt?.id ?? '', { approved: true })] })
    t.strictSame(tool.ran, [{ path: 'a' }])
    t.equal(texts(session).filter((line) => line === 'researcher/fetcher: text Done.').length, 1)
    t.equal(texts(session).at(-1), ': All is done.')
    t.strictSame(session.errors, [])
  })
}
