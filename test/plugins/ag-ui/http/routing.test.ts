import t from 'tap'
import Fastify from 'fastify'
import { type Agent } from '../../../../lib/agent/index.ts'
import { agUi } from '../../../../plugins/ag-ui/index.ts'
import { buildApp, eventsOf, request, serveApp } from '../../../helpers/ag-ui-app.ts'
import { connect } from '../../../helpers/sse-client.ts'

const named = (name: string): Agent => ({
  name,
  async * stream () { yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: name } }
})
const agents = { path: named('path'), header: named('header'), props: named('props'), usual: named('usual'), 7: named('seven') }

/** Which agent answered, or the status and code of the refusal. */
async function ask (server: Awaited<ReturnType<typeof buildApp>>, url: string, headers: Record<string, string> = {}, forwardedProps?: unknown): Promise<string> {
  const response = await server.app.inject({ method: 'POST', url, headers, payload: request({ forwardedProps }) })
  if (response.statusCode !== 200) return `${response.statusCode} ${(response.json() as { error: { code: string } }).error.code}`
  return /"delta":"(\w+)"/.exec(response.body)?.[1] ?? response.body
}

t.test('the path names the agent before the header, the header before forwardedProps, those before the default', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual' })
  const props = { agentId: 'props' }
  t.equal(await ask(server, '/agui/run/path', { 'x-agent-id': 'header' }, props), 'path')
  t.equal(await ask(server, '/agui/run', { 'x-agent-id': 'header' }, props), 'header')
  t.equal(await ask(server, '/agui/run', { 'X-AGENT-ID': 'header' }), 'header')
  t.equal(await ask(server, '/agui/run', {}, props), 'props')
  t.equal(await ask(server, '/agui/run', {}, { agentId: 7 }), 'seven')
  t.equal(await ask(server, '/agui/run'), 'usual')
})

t.test('what is blank counts as absent', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual' })
  t.equal(await ask(server, '/agui/run', { 'x-agent-id': ' ' }, { agentId: 'props' }), 'props')
  for (const forwardedProps of [null, undefined, {}, { agentId: '' }, { agentId: null }, { agentId: {} }, { agentId: ['props'] }, 'props', ['props'], 1]) {
    t.equal(await ask(server, '/agui/run', {}, forwardedProps), 'usual', JSON.stringify(forwardedProps))
  }
})

t.test('an unknown agent is refused wherever it was named, and never falls through', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual' })
  for (const name of ['nobody', '__proto__', 'constructor', 'toString', 'PATH', '%00', 'a'.repeat(100)]) {
    t.equal(await ask(server, `/agui/run/${encodeURIComponent(name)}`, { 'x-agent-id': 'header' }), '404 AGENT_NOT_FOUND', name)
    t.equal(await ask(server, '/agui/run', { 'x-agent-id': name }, { agentId: 'props' }), '404 AGENT_NOT_FOUND', name)
    t.equal(await ask(server, '/agui/run', {}, { agentId: name }), '404 AGENT_NOT_FOUND', name)
  }
  t.strictSame(await server.runIds(), [])
})

t.test('without a default agent an unnamed one is refused, unless it is the only one or called default', async (t) => {
  const several = await buildApp(t, { agents: { a: named('a'), b: named('b') } })
  t.equal(await ask(several, '/agui/run'), '404 AGENT_NOT_FOUND')
  const only = await buildApp(t, { agents: { a: named('only') } })
  t.equal(await ask(only, '/agui/run'), 'only')
  const called = await buildApp(t, { agents: { a: named('a'), default: named('called') } })
  t.equal(await ask(called, '/agui/run'), 'called')
})

t.test('another header can choose the agent', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual', agentIdHeader: 'X-Bot' })
  t.equal(await ask(server, '/agui/run', { 'x-bot': 'header' }), 'header')
  t.equal(await ask(server, '/agui/run', { 'x-agent-id': 'header' }), 'usual')
})

t.test('with path routing off the path routes are not there', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual', enablePathRouting: false })
  t.equal(await ask(server, '/agui/run/path'), '404 NOT_FOUND')
  t.equal(await ask(server, '/agui/connect/path'), '404 NOT_FOUND')
  t.equal(await ask(server, '/agui/run'), 'usual')
})

t.test('a prefix of one\'s own replaces /agui', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual', prefix: '/bots/v1' })
  t.equal(await ask(server, '/bots/v1/run'), 'usual')
  t.equal((await server.app.inject({ method: 'POST', url: '/agui/run', payload: request() })).statusCode, 404)
})

t.test('a client that takes no event stream is refused with 406 before anything starts', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual' })
  for (const accept of ['application/json', 'text/html', 'text/event-stream;q=0', 'text/*;q=0, application/json', '*/*;q=0', 'application/vnd.ag-ui.event+proto', 'nonsense']) {
    t.equal(await ask(server, '/agui/run', { accept }), '406 NOT_ACCEPTABLE', accept)
    t.equal(await ask(server, '/agui/connect', { accept }), '406 NOT_ACCEPTABLE', accept)
  }
  t.strictSame(await server.runIds(), [])
  for (const accept of ['text/event-stream', 'text/*', '*/*', '', 'application/json, text/event-stream;q=0.1', 'TEXT/EVENT-STREAM', 'application/vnd.ag-ui.event+proto, text/event-stream']) {
    t.equal(await ask(server, '/agui/run', { accept }), 'usual', accept)
  }
})

t.test('other methods and other paths under the prefix answer 404 as JSON, and start nothing', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual' })
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'] as const) {
    for (const url of ['/agui/run', '/agui/run/path', '/agui/connect', '/agui/stop/thread', '/agui', '/agui/', '/agui/nothing']) {
      const response = await server.app.inject({ method, url })
      t.match(response, { statusCode: 404, headers: { 'content-type': 'application/json; charset=utf-8' } }, `${method} ${url}`)
      t.match(response.json(), { error: { code: 'NOT_FOUND' } })
    }
  }
  for (const url of ['/agui/run', '/agui/connect', '/agui/stop/thread']) {
    const response = await server.app.inject({ method: 'HEAD', url })
    t.match(response, { statusCode: 404, body: '' }, `HEAD ${url}`)
  }
  t.strictSame(await server.runIds(), [])
})

t.test('the 404 of the host is left to the host', async (t) => {
  const server = await buildApp(t, { agents, before: (app) => { app.setNotFoundHandler((_request, reply) => reply.code(404).send('host')) } })
  t.equal((await server.app.inject('/elsewhere')).body, 'host')
  t.match((await server.app.inject('/agui/nothing')).json(), { error: { code: 'NOT_FOUND' } })
})

t.test('serves at the root beside a host that has its own 404', async (t) => {
  const server = await buildApp(t, {
    agents, defaultAgent: 'usual', prefix: '/', before: (app) => { app.setNotFoundHandler((_request, reply) => reply.code(404).send('host')) }
  })
  t.equal(await ask(server, '/run'), 'usual')
  t.equal((await server.app.inject('/elsewhere')).body, 'host')
})

/** What each route answers to a request that is right, and to one of nobody's. Every route and method has a row. */
const MATRIX: Readonly<Record<string, { readonly right: number, readonly broken: number }>> = {
  'POST /agui/run': { right: 200, broken: 400 },
  'POST /agui/run/:agentId': { right: 200, broken: 400 },
  'POST /agui/connect': { right: 200, broken: 400 },
  'POST /agui/connect/:agentId': { right: 200, broken: 400 },
  'POST /agui/stop/:threadId': { right: 200, broken: 400 },
  'OPTIONS /agui*': { right: 204, broken: 400 }
}

t.test('every route of the plugin, with every method, is known here and answers by its rules', async (t) => {
  const routes: string[] = []
  const server = await buildApp(t, {
    agents,
    before: (app) => {
      app.addHook('onRoute', ({ method, url }) => { for (const one of [method].flat()) routes.push(`${one} ${url}`) })
    }
  })
  t.strictSame([...routes].sort(), Object.keys(MATRIX).sort())
  for (const [route, { right, broken }] of Object.entries(MATRIX)) {
    const [method = '', path = ''] = route.split(' ')
    const url = path.replace(':agentId', 'path').replace(':threadId', 'thread').replace('*', '/run')
    const isPreflight = method === 'OPTIONS'
    const headers = { 'content-type': 'application/json', ...isPreflight && { origin: 'https://page.example', 'access-control-request-method': 'POST' } }
    const good = await server.app.inject({ method: method as 'POST', url, headers, ...!isPreflight && { payload: request({ forwardedProps: { agentId: 'path' } }) } })
    t.equal(good.statusCode, right, route)
    const bad = await server.app.inject({ method: method as 'POST', url, ...!isPreflight && { headers: { 'content-type': 'application/json' }, payload: '{"threadId":' } })
    t.equal(bad.statusCode, broken, `${route}, broken`)
    if (!isPreflight) t.match(bad.json(), { error: { code: 'INVALID_JSON' } })
  }
})

t.test('OpenAPI shows the routes, their bodies and their refusals', async (t) => {
  const { default: swagger } = await import('@fastify/swagger')
  const server = await buildApp(t, { agents, before: (app) => app.register(swagger, { openapi: { openapi: '3.1.0' } }) })
  const document = server.app.swagger() as { paths: Record<string, { post: { requestBody?: unknown, responses: object } }> }
  t.strictSame(Object.keys(document.paths).sort(), ['/agui/connect', '/agui/connect/{agentId}', '/agui/run', '/agui/run/{agentId}', '/agui/stop/{threadId}'])
  for (const { post } of Object.values(document.paths)) {
    t.ok(post.requestBody)
    t.match(post.responses, { 200: {}, 400: {}, 401: {}, 404: {}, 413: {}, 415: {}, 503: {} })
  }
})

t.test('works alone, without the agents plugin, and under two prefixes with agents of their own', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(agUi, { agents: { only: named('first') }, prefix: '/first' })
  await app.register(agUi, { agents: { only: named('second') }, prefix: '/second' })
  for (const name of ['first', 'second']) {
    const response = await app.inject({ method: 'POST', url: `/${name}/run`, payload: request() })
    t.match(response.body, `"delta":"${name}"`)
  }
})

t.test('a host hook that refuses answers before anything of the request is used', async (t) => {
  const server = await buildApp(t, {
    agents,
    before: (app) => {
      app.addHook('onRequest', async (request) => {
        if (request.headers.authorization === undefined) throw Object.assign(new Error('Who are you?'), { statusCode: 401, code: 'NO_TOKEN' })
        if (request.headers.authorization === 'other') throw Object.assign(new Error('Not you.'), { statusCode: 403 })
      })
    }
  })
  t.match((await server.app.inject({ method: 'POST', url: '/agui/run', payload: request() })), { statusCode: 401, body: '{"error":{"code":"NO_TOKEN","message":"Who are you?"}}' })
  t.match((await server.app.inject({ method: 'POST', url: '/agui/run', headers: { authorization: 'other' }, payload: request() })), { statusCode: 403, body: '{"error":{"code":"HTTP_403","message":"Not you."}}' })
  t.strictSame(await server.runIds(), [])
})

t.test('a fault of the server\'s own is a 500 that tells nothing, and is logged', async (t) => {
  const server = await buildApp(t, { agents, defaultAgent: 'usual', getPrincipal: () => { throw new Error('secret') } })
  const response = await server.app.inject({ method: 'POST', url: '/agui/run', payload: request() })
  t.match(response, { statusCode: 500 })
  t.strictSame(response.json(), { error: { code: 'INTERNAL_ERROR', message: 'The server could not handle this request.' } })
  t.match(server.logs.filter(({ level }) => level >= 50), [{ msg: 'request failed', err: { message: 'secret' } }])
})

t.test('streams over a connection that the client keeps', async (t) => {
  const server = await serveApp(t, { agents, defaultAgent: 'usual' })
  const client = await connect('POST', '/agui/run', { port: server.port, headers: { connection: 'keep-alive' }, body: request() })
  t.equal((await eventsOf(client)).at(-1)?.type, 'RUN_FINISHED')
})
