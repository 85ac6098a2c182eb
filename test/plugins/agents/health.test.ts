import t from 'tap'
import { FaultPlan, faultyStore, memoryStore } from '../../../lib/stores/index.ts'
import { buildApp, request, serveApp } from '../../helpers/ag-ui-app.ts'
import { connect } from '../../helpers/sse-client.ts'
import { steered } from '../../helpers/steered-agent.ts'

t.test('a server says that it is alive and ready, under the paths that were asked for and no others', async (t) => {
  const { app } = await buildApp(t, { agent: steered(), host: { health: {} } })
  for (const [url, status] of [['/livez', 'alive'], ['/readyz', 'ready']] as const) {
    const response = await app.inject(url)
    t.match(response, { statusCode: 200, headers: { 'cache-control': 'no-store' } })
    t.strictSame(response.json(), { status })
    t.equal((await app.inject({ method: 'HEAD', url })).statusCode, 200)
  }
  const other = await buildApp(t, { agent: steered(), host: { health: { livePath: '/up', readyPath: '/health/ready' } } })
  t.strictSame(await Promise.all(['/up', '/health/ready', '/livez', '/readyz'].map(async (url) => (await other.app.inject(url)).statusCode)), [200, 200, 404, 404])
  const none = await buildApp(t, { agent: steered() })
  t.strictSame(await Promise.all(['/livez', '/readyz', '/metrics'].map(async (url) => (await none.app.inject(url)).statusCode)), [404, 404, 404])
})

t.test('a server whose store is away is alive and not ready, within the deadline of the store', async (t) => {
  // A server that does not listen has nothing that keeps the process alive while the store is waited for.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => { clearInterval(alive) })
  const plan = new FaultPlan()
  const { app, logs } = await buildApp(t, { agent: steered(), store: faultyStore(memoryStore(), plan), host: { health: {}, storeTimeoutMs: 20 } })
  plan.failBefore('kv.get')
  const failed = await app.inject('/readyz')
  t.strictSame([failed.statusCode, failed.json()], [503, { status: 'store-unavailable' }])
  t.match(logs.find(({ level }) => level === 40), { msg: 'not ready: the store does not answer' })
  const hold = plan.hold('kv.get')
  const before = plan.count('kv.get')
  const answers = await Promise.all(Array.from({ length: 20 }, () => app.inject('/readyz')))
  t.same(new Set(answers.map(({ statusCode }) => statusCode)), new Set([503]))
  t.equal(plan.count('kv.get'), before + 1, 'one question at a time, whoever asks')
  t.equal((await app.inject('/livez')).statusCode, 200)
  hold.release()
  t.equal((await app.inject('/readyz')).statusCode, 200)
})

t.test('a draining server is not ready and starts nothing, in the protocol\'s own words, while what runs goes on', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, host: { health: {} } })
  const client = await server.run()
  const run = await agent.next()
  server.host.drain()
  t.strictSame((await server.app.inject('/readyz')).json(), { status: 'closing' })
  t.equal((await server.app.inject('/livez')).statusCode, 200)
  const refused = await server.app.inject({ method: 'POST', url: '/agui/run', payload: request({ threadId: 'other' }) })
  t.equal(refused.statusCode, 503)
  t.match(refused.headers['retry-after'], /^[1-5]$/)
  t.match(refused.json(), { error: { code: 'SERVICE_UNAVAILABLE' } })
  const reader = await server.rejoin({ threadId: 'thread' })
  run.say('to the end')
  run.end()
  t.match(await client.text(), /to the end.*RUN_FINISHED/s)
  t.match(await reader.text(), /to the end.*RUN_FINISHED/s)
})

t.test('readiness turns when the server begins to close, before anything else ends', async (t) => {
  const agent = steered({ deaf: true })
  const plan = new FaultPlan()
  const server = await serveApp(t, { agent, store: faultyStore(memoryStore(), plan), host: { health: {}, shutdownMs: 300 } })
  const client = await server.run()
  await agent.next()
  const hold = plan.hold('kv.get')
  const probe = connect('GET', '/readyz', { port: server.port })
  await hold.arrived
  const closing = server.app.close()
  while (!server.host.engine.isClosing) await new Promise((resolve) => { setImmediate(resolve) })
  hold.release()
  const response = await probe
  t.strictSame([response.status, await response.json()], [503, { status: 'closing' }], 'a question that was under way is answered truly')
  await client.text()
  await closing
})
