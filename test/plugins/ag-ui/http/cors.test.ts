import cors from '@fastify/cors'
import t from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { buildApp, eventsOf, request, serveApp } from '../../../helpers/ag-ui-app.ts'

const agent: Agent = { name: 'quiet', async * stream () {} }
const origin = 'https://page.example'
const preflight = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type,x-agent-id,last-event-id' }

t.test('a page of any origin may run, rejoin and stop, without credentials', async (t) => {
  const server = await serveApp(t, { agent, agentIdHeader: 'X-Bot' })
  for (const url of ['/agui/run', '/agui/run/agent', '/agui/connect', '/agui/connect/agent', '/agui/stop/thread', '/agui/nothing']) {
    const { statusCode, headers } = await server.app.inject({ method: 'OPTIONS', url, headers: preflight })
    t.equal(statusCode, 204, url)
    t.match(headers, {
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
      'access-control-allow-headers': 'content-type, accept, authorization, last-event-id, idempotency-key, x-bot'
    })
    t.notOk(headers['access-control-allow-credentials'])
  }
  const stream = await server.run({}, { headers: { origin } })
  t.equal(stream.headers['access-control-allow-origin'], '*')
  t.equal((await eventsOf(stream)).at(-1)?.type, 'RUN_FINISHED')
  const rejoined = await server.rejoin({ threadId: 'thread' }, undefined, { headers: { origin } })
  t.equal(rejoined.headers['access-control-allow-origin'], '*')
  await rejoined.text()
})

t.test('refusals carry the headers too, or a page could not read why', async (t) => {
  const server = await buildApp(t, { agent, bodyLimit: 2_000 })
  const cases = [
    { payload: '{', headers: { 'content-type': 'application/json' } },
    { payload: request(), url: '/agui/run/nobody' },
    { payload: 'x'.repeat(3_000), headers: { 'content-type': 'application/json' } },
    { payload: 'x', headers: { 'content-type': 'text/plain' } },
    { payload: request(), headers: { accept: 'text/html' } },
    { payload: request(), url: '/agui/nothing' }
  ]
  for (const { payload, url = '/agui/run', headers = {} } of cases) {
    const response = await server.app.inject({ method: 'POST', url, headers: { origin, ...headers }, payload })
    t.ok(response.statusCode >= 400)
    t.equal(response.headers['access-control-allow-origin'], '*', `${url} ${response.statusCode}`)
  }
})

t.test('options of @fastify/cors are taken, over the defaults', async (t) => {
  const server = await serveApp(t, { agent, cors: { origin: [origin], credentials: true } })
  const stream = await server.run({}, { headers: { origin } })
  t.equal(stream.headers['access-control-allow-origin'], origin)
  t.equal(stream.headers['access-control-allow-credentials'], 'true')
  t.match(stream.headers.vary, /Origin/)
  await stream.text()
  const other = await server.run({ runId: 'other' }, { headers: { origin: 'https://other.example' } })
  t.notOk(other.headers['access-control-allow-origin'])
  await other.text()
})

t.test('with cors: false there are no headers and no preflight', async (t) => {
  const server = await serveApp(t, { agent, cors: false })
  const stream = await server.run({}, { headers: { origin } })
  t.notOk(stream.headers['access-control-allow-origin'])
  await stream.text()
  t.equal((await server.app.inject({ method: 'OPTIONS', url: '/agui/run', headers: preflight })).statusCode, 404)
})

t.test('where the host has registered @fastify/cors, its rules stand on the stream as well', async (t) => {
  const server = await serveApp(t, { agent, cors: { origin: 'https://ignored.example' }, before: (app) => app.register(cors, { origin: 'https://host.example' }) })
  const stream = await server.run({}, { headers: { origin } })
  t.equal(stream.headers['access-control-allow-origin'], 'https://host.example')
  await stream.text()
  const { headers } = await server.app.inject({ method: 'OPTIONS', url: '/agui/run', headers: preflight })
  t.equal(headers['access-control-allow-origin'], 'https://host.example')
})

t.test('headers that hooks have set, cookies included, are on the stream; those of a body with a length are not', async (t) => {
  const server = await serveApp(t, {
    agent,
    before: (app) => {
      app.addHook('onRequest', (_request, reply, done) => {
        reply.header('x-ratelimit-remaining', 7).header('set-cookie', ['a=1', 'b=2']).header('content-length', '5').header('content-encoding', 'gzip').header('connection', 'close')
        done()
      })
    }
  })
  const stream = await server.run()
  t.equal(stream.headers['x-ratelimit-remaining'], '7')
  t.strictSame(stream.headers['set-cookie'], ['a=1', 'b=2'])
  t.equal(stream.headers['content-length'], undefined)
  t.equal(stream.headers['content-encoding'], undefined)
  t.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal((await eventsOf(stream)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a second registration has CORS of its own', async (t) => {
  const { agUi } = await import('../../../../plugins/ag-ui/index.ts')
  const server = await buildApp(t, { agent, cors: { origin: 'https://one.example' }, before: async (app) => { await app.register(agUi, { agents: { agent }, prefix: '/two', cors: false }) } })
  const one = await server.app.inject({ method: 'POST', url: '/agui/run', headers: { origin }, payload: request() })
  t.equal(one.headers['access-control-allow-origin'], 'https://one.example')
  const two = await server.app.inject({ method: 'POST', url: '/two/run', headers: { origin }, payload: request() })
  t.notOk(two.headers['access-control-allow-origin'])
})

t.test('preflights of paths that only begin like the prefix are not answered', async (t) => {
  const server = await buildApp(t, { agent, before: (app) => { app.delete('/agui-admin', () => 'deleted') } })
  for (const url of ['/agui-admin', '/aguix/run', '/agui.json']) {
    const { statusCode, headers } = await server.app.inject({ method: 'OPTIONS', url, headers: { ...preflight, 'access-control-request-method': 'DELETE' } })
    t.equal(statusCode, 404, url)
    t.notOk(headers['access-control-allow-origin'])
  }
  for (const url of ['/agui', '/agui/', '/agui/run?x=1']) t.equal((await server.app.inject({ method: 'OPTIONS', url, headers: preflight })).statusCode, 204, url)
})
