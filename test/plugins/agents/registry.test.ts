import t from 'tap'
import { AgentRegistry, type AgentRequest } from '../../../plugins/agents/index.ts'
import { scripted } from '../../helpers/steered-agent.ts'

const about = {} as AgentRequest

t.test('gives a shared instance to everybody, and says that it is nobody\'s to close', async (t) => {
  const agent = scripted([])
  const registry = new AgentRegistry({ agent })
  const found = registry.resolve('agent')
  t.match(found, { agentId: 'agent', isOwned: false })
  t.equal(await found.make(about), agent)
  t.equal(await found.make(about), agent)
})

t.test('calls a factory for each run with what is known of the request', async (t) => {
  const asked: AgentRequest[] = []
  const registry = new AgentRegistry({ made: async (request) => { asked.push(request); return scripted([]) } })
  const found = registry.resolve('made')
  t.match(found, { agentId: 'made', isOwned: true })
  t.not(await found.make(about), await found.make(about))
  t.strictSame(asked, [about, about])
})

t.test('a factory that makes nothing has no agent', async (t) => {
  const registry = new AgentRegistry({ nothing: () => undefined, missing: async () => null })
  for (const id of ['nothing', 'missing']) await t.rejects(registry.resolve(id).make(about), { code: 'AGT_ERR_AGENT_NOT_FOUND', statusCode: 404 })
})

t.test('registering a name again replaces it, removing it frees it', async (t) => {
  const [one, two] = [scripted([]), scripted([])]
  const registry = new AgentRegistry({ agent: one })
  const held = registry.resolve('agent')
  registry.register('agent', two)
  t.equal(await held.make(about), one, 'who has looked it up keeps it')
  t.equal(await registry.resolve('agent').make(about), two)
  registry.register('agent', () => one)
  t.equal(registry.resolve('agent').isOwned, true)
  t.equal(registry.unregister('agent'), true)
  t.equal(registry.unregister('agent'), false)
  t.throws(() => registry.resolve('agent'), { code: 'AGT_ERR_AGENT_NOT_FOUND' })
  t.strictSame(registry.ids, [])
})

t.test('the default is the named one, else the only one, else the one called default', (t) => {
  const agent = scripted([])
  t.equal(new AgentRegistry({ a: agent, b: agent }, 'b').defaultId, 'b')
  t.equal(new AgentRegistry({ a: agent }).defaultId, 'a')
  t.equal(new AgentRegistry({ a: agent, default: agent }).defaultId, 'default')
  t.equal(new AgentRegistry({ a: agent, b: agent }).defaultId, undefined)
  t.equal(new AgentRegistry().defaultId, undefined)
  t.throws(() => new AgentRegistry({ a: agent, b: agent }).resolve(undefined), { code: 'AGT_ERR_AGENT_NOT_FOUND' })
  t.equal(new AgentRegistry({ a: agent }).resolve(undefined).agentId, 'a')
  t.end()
})

t.test('refuses what cannot be an agent, a blank name, and a default that is not there', (t) => {
  const agent = scripted([])
  for (const source of [undefined, null, {}, { stream: 1 }, 'agent', 1]) {
    t.throws(() => new AgentRegistry({ a: source as never }), { code: 'AGT_ERR_OPTION_INVALID' }, JSON.stringify(source))
  }
  for (const id of ['', ' ', '\t\n']) t.throws(() => new AgentRegistry({ [id]: agent }), { code: 'AGT_ERR_OPTION_INVALID' })
  t.throws(() => new AgentRegistry({ a: agent }, 'b'), { code: 'AGT_ERR_OPTION_INVALID', message: /defaultAgent.*"b".* a/ })
  t.throws(() => new AgentRegistry({}, 'b'), { code: 'AGT_ERR_OPTION_INVALID', message: /none/ })
  t.end()
})

t.test('names that objects have by themselves are no agents', (t) => {
  const registry = new AgentRegistry({ a: scripted([]) })
  for (const id of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) t.throws(() => registry.resolve(id), { code: 'AGT_ERR_AGENT_NOT_FOUND' }, id)
  registry.register('__proto__', scripted([]))
  t.equal(registry.resolve('__proto__').agentId, '__proto__')
  t.end()
})

t.test('a registry made of another shares its agents, with a default of its own', (t) => {
  const one = new AgentRegistry({ a: scripted([]), b: scripted([]) }, 'a')
  const two = new AgentRegistry(one, 'b')
  one.register('c', scripted([]))
  t.strictSame([two.ids, two.defaultId, one.defaultId], [['a', 'b', 'c'], 'b', 'a'])
  t.end()
})

t.test('describes shared agents by what they say, factories by their name', (t) => {
  const registry = new AgentRegistry({ said: { ...scripted([]), name: 'Said', description: 'It says so.' }, bare: scripted([]), made: () => scripted([]) })
  t.strictSame(['said', 'bare', 'made', 'nobody'].map((id) => registry.describe(id)), [
    { name: 'Said', description: 'It says so.' }, { name: 'scripted' }, { name: 'made' }, undefined
  ])
  t.end()
})
