import Fastify from 'fastify'
import t from 'tap'
import { type Agent } from '../../../lib/agent/index.ts'
import { memoryStore, type Store } from '../../../lib/stores/index.ts'
import { agUi } from '../../../plugins/ag-ui/index.ts'
import { agents, type AgentRequest, ownerOf } from '../../../plugins/agents/index.ts'
import { request } from '../../helpers/ag-ui-app.ts'
import { scripted, steered } from '../../helpers/steered-agent.ts'
import { connect } from '../../helpers/sse-client.ts'

const saying = (text: string): Agent => scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: text }])

t.test('two registrations on one engine have agents, principals and options of their own', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(agents, { agents: { a: saying('shared a'), b: saying('shared b') }, defaultAgent: 'a' })
  await app.register(agUi, { prefix: '/plain' })
  await app.register(agUi, { prefix: '/other', defaultAgent: 'b', echoInput: false })
  await app.register(agUi, { prefix: '/own', agents: { a: saying('own a') }, getPrincipal: (request) => ({ id: String(request.headers['x-user']) }) })
  const ask = async (prefix: string, path = '', headers: Record<string, string> = {}): Promise<string> =>
    (await app.inject({ method: 'POST', url: `/${prefix}/run${path}`, headers, payload: request({ threadId: prefix + path, runId: 'r' }) })).body

  t.match(await ask('plain'), /"input":.*"delta":"shared a"/s)
  t.match(await ask('other'), /"delta":"shared b"/)
  t.notMatch(await ask('other'), /"input"/)
  t.match(await ask('own', '', { 'x-user': 'ann' }), /"delta":"own a"/)
  t.match(await ask('own', '/b', { 'x-user': 'ann' }), /AGENT_NOT_FOUND/)
  t.match(await ask('plain', '/b'), /"delta":"shared b"/)

  app.agents.registry.register('late', saying('late'))
  t.match(await ask('plain', '/late'), /"delta":"late"/)
  t.match(await ask('other', '/late'), /"delta":"late"/)
  t.match(await ask('own', '/late'), /AGENT_NOT_FOUND/)

  const { store } = app.agents
  t.strictSame((await store.index.list({ id: 'ann' }, { limit: 9 })).runs.map(({ session }) => session), ['own'])
  t.strictSame((await store.index.list({}, { limit: 9 })).runs.map(({ session }) => session).sort(), ['other', 'plain', 'plain/b', 'plain/late', 'other/late'].sort())
})

t.test('a thread that was started under one prefix is found under the other', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const agent = steered()
  await app.register(agents, { agents: { agent } })
  await app.register(agUi, { prefix: '/one' })
  await app.register(agUi, { prefix: '/two' })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const address = app.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const client = await connect('POST', '/one/run', { port, body: request() })
  await agent.next()
  const busy = await app.inject({ method: 'POST', url: '/two/run', payload: request({ runId: 'second' }) })
  t.match(busy.body, /is busy with run \\"run\\"/)
  const reader = await connect('POST', '/two/connect', { port, body: { threadId: 'thread' } })
  t.strictSame((await app.inject({ method: 'POST', url: '/two/stop/thread' })).json(), { threadId: 'thread', stopped: true })
  const text = await client.text()
  t.match(text, /"outcome":\{"type":"cancelled"\}/)
  t.equal(await reader.text(), text)
})

t.test('without the agents plugin each registration has an engine of its own', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(agUi, { prefix: '/one', agents: { agent: saying('one') } })
  await app.register(agUi, { prefix: '/two', agents: { agent: saying('two') } })
  t.notOk(app.hasDecorator('agents'))
  await app.inject({ method: 'POST', url: '/one/run', payload: request() })
  const other = await app.inject({ method: 'POST', url: '/two/connect', payload: { threadId: 'thread' } })
  t.notMatch(other.body, /"id"|one/)
})

t.test('the agents plugin can be registered once, and before the protocols', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(agents, {})
  await t.rejects(async () => { await app.register(agents, {}) }, { code: 'FST_ERR_DEC_ALREADY_PRESENT' })
})

t.test('bad options stop the server from starting', async (t) => {
  for (const [plugin, options] of [[agents, { leaseMs: 1 }], [agents, { agents: { a: {} } }], [agUi, { agents: { a: saying('a') }, defaultAgent: 'b' }], [agUi, { heartbeatMs: 1 }]] as const) {
    const app = Fastify()
    await t.rejects(async () => { await app.register(plugin as typeof agUi, options as object) }, { code: 'AGT_ERR_OPTION_INVALID' })
    await app.close()
  }
})

t.test('a factory is told who asks for what, and its agent is closed when the run is over; an instance never is', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  const asked: AgentRequest[] = []
  const events: string[] = []
  const made: Agent = { name: 'made', async * stream () { events.push('stream') }, close () { events.push('close') } }
  const shared: Agent = { name: 'shared', async * stream () { events.push('shared') }, close () { events.push('never') } }
  await app.register(agents, { agents: { made: (about) => { asked.push(about); return made }, shared }, getPrincipal: () => ({ id: 'ann', tenant: 'acme' }) })
  await app.register(agUi)
  for (const [agent, runId] of [['made', '1'], ['shared', '2'], ['made', '3']] as const) {
    await app.inject({ method: 'POST', url: `/agui/run/${agent}`, payload: request({ runId }) })
  }
  t.strictSame(events, ['stream', 'close', 'shared', 'stream', 'close'])
  t.match(asked, [{ agentId: 'made', protocol: 'ag-ui', session: 'thread', principal: { id: 'ann', tenant: 'acme' }, request: { method: 'POST' } }, {}])
  t.equal(asked.length, 2)
})

t.test('an agent of a factory is closed once however its run ends, and a failing close harms nobody', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  let closed = 0
  const ends: Readonly<Record<string, () => Agent>> = {
    returns: () => scripted([]),
    throws: () => scripted([], { error: new Error('x') }),
    pauses: () => scripted([{ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] }])
  }
  await app.register(agents, {
    agents: Object.fromEntries(Object.entries(ends).map(([name, make]) => [name, () => Object.assign(make(), { close () { closed++; throw new Error('close') } })]))
  })
  await app.register(agUi)
  let count = 0
  for (const name of Object.keys(ends)) {
    const response = await app.inject({ method: 'POST', url: `/agui/run/${name}`, payload: request({ threadId: name }) })
    t.match(response.body, /"RUN_(FINISHED|ERROR)"/)
    t.equal(closed, ++count, name)
  }
})

t.test('a duplicate makes no agent', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  let made = 0
  await app.register(agents, { agents: { agent: () => { made++; return scripted([]) } } })
  await app.register(agUi)
  for (let index = 0; index < 3; index++) await app.inject({ method: 'POST', url: '/agui/run', payload: request() })
  t.equal(made, 1)
})

t.test('whoever has no usable identity is refused with 401', async (t) => {
  for (const principal of [undefined, null, {}, { id: '' }, { id: 1 }, 'ann']) {
    const app = Fastify()
    await app.register(agents, { agents: { agent: saying('x') }, getPrincipal: () => principal as never })
    await app.register(agUi)
    const response = await app.inject({ method: 'POST', url: '/agui/run', payload: request() })
    t.equal(response.statusCode, 401, JSON.stringify(principal))
    await app.close()
  }
})

t.test('the owner is the principal with its tenant, nobody without one', (t) => {
  t.strictSame([ownerOf(undefined), ownerOf({ id: 'a' }), ownerOf({ id: 'a', tenant: 't' })], [{}, { id: 'a' }, { tenant: 't', id: 'a' }])
  t.end()
})

t.test('a store that was passed in stays open, one of our own is closed', async (t) => {
  let closed = 0
  const store: Store = memoryStore()
  const close = store.close.bind(store)
  store.close = async () => { closed++; await close() }
  const app = Fastify()
  await app.register(agents, { agents: { agent: saying('x') }, store })
  await app.register(agUi)
  await app.inject({ method: 'POST', url: '/agui/run', payload: request() })
  await app.close()
  t.equal(closed, 0)
  t.equal((await store.index.list({}, { limit: 9 })).runs.length, 1)
  await store.close()
})

t.test('a store that is away is a 503 before the stream, and logs no secret to the client', async (t) => {
  const broken = memoryStore()
  const index = Object.create(broken.index) as Store['index']
  index.add = async () => { throw new Error('secret: no connection to redis://user:pass@host') }
  const store = new Proxy(broken, { get: (target, key) => key === 'index' ? index : Reflect.get(target, key, target) as unknown })
  const agent = steered()
  const app = Fastify()
  t.teardown(async () => { await app.close(); await broken.close() })
  await app.register(agents, { agents: { agent }, store, storeTimeoutMs: 50 })
  await app.register(agUi)
  const response = await app.inject({ method: 'POST', url: '/agui/run', payload: request() })
  t.match(response, { statusCode: 503 })
  t.match(response.json(), { error: { code: 'SERVICE_UNAVAILABLE' } })
  t.notMatch(response.body, /secret|redis/)
  t.strictSame(agent.runs, [])
})
