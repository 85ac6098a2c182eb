import t from 'tap'
import { eventsOf, readUntil, request, serveApp } from '../../../helpers/ag-ui-app.ts'
import { typesOf } from '../../../helpers/ag-ui-check.ts'
import { steered } from '../../../helpers/steered-agent.ts'

const as = (user: string): { readonly headers: Record<string, string> } => ({ headers: { authorization: user } })
const getPrincipal = ({ headers }: { readonly headers: Record<string, unknown> }): { id: string, tenant?: string } | undefined => {
  const [id, tenant] = String(headers['authorization'] ?? '').split('@')
  return id === '' || id === undefined ? undefined : { id, ...tenant !== undefined && { tenant } }
}

t.test('nobody is answered who has no identity, on any route', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal })
  for (const url of ['/agui/run', '/agui/run/agent', '/agui/connect', '/agui/connect/agent', '/agui/stop/thread']) {
    const response = await server.app.inject({ method: 'POST', url, payload: request() })
    t.match(response, { statusCode: 401, headers: { 'content-type': 'application/json; charset=utf-8' } }, url)
    t.match(response.json(), { error: { code: 'UNAUTHENTICATED' } })
  }
  t.strictSame(agent.runs, [])
})

t.test('threads of the same name belong to their owners, and run beside each other', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal })
  const users = ['ann', 'bob', 'ann@acme', 'ann@umbrella']
  for (const user of users) {
    const client = await server.run({}, as(user))
    const run = await agent.next()
    t.equal(run.context.userId, 'ann bob'.includes(user) ? user : 'ann')
    await readUntil(client, ({ type }) => type === 'RUN_STARTED')
    t.teardown(() => client.destroy())
  }
  t.equal(agent.runs.length, users.length)
})

t.test('somebody else\'s thread answers exactly as one that does not exist', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal })
  const client = await server.run({}, as('ann'))
  const run = await agent.next()
  run.say('secret')
  const seen = await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  const cursor = seen.at(-1)?.id

  const strip = (text: string): string => text.replaceAll('unknown', 'thread')
  const foreign = await (await server.rejoin({ threadId: 'thread', runId: 'run' }, cursor, as('bob'))).text()
  const unknown = await (await server.rejoin({ threadId: 'unknown', runId: 'run' }, cursor, as('bob'))).text()
  t.equal(foreign, strip(unknown))
  const events = await eventsOf(await server.rejoin({ threadId: 'thread', runId: 'run' }, cursor, as('bob')), { ids: false })
  t.strictSame(typesOf(events), ['RUN_STARTED', 'RUN_FINISHED'])

  t.strictSame(await server.stop('thread', undefined, { authorization: 'bob' }), { status: 200, body: { threadId: 'thread', stopped: false } })
  t.strictSame(await server.stop('thread', { runId: 'run' }, { authorization: 'ann@acme' }), { status: 200, body: { threadId: 'thread', stopped: false } })
  t.equal(run.context.signal.aborted, false)

  // The same request is another run: it neither waits for the first one nor shows it.
  const own = await server.run({}, as('bob'))
  const other = await agent.next()
  other.end()
  t.notMatch(JSON.stringify(await eventsOf(own)), /secret/)

  const mine = await server.rejoin({ threadId: 'thread' }, cursor, as('ann'))
  t.strictSame(await server.stop('thread', undefined, { authorization: 'ann' }), { status: 200, body: { threadId: 'thread', stopped: true } })
  t.match(await mine.text(), /"outcome":\{"type":"cancelled"\}/)
  await client.rest()
})

t.test('an Idempotency-Key is its owner\'s', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal })
  for (const user of ['ann', 'bob']) {
    const client = await server.run({ runId: user }, { headers: { authorization: user, 'idempotency-key': 'k' } });
    (await agent.next()).end()
    t.match((await eventsOf(client)).at(-1), { type: 'RUN_FINISHED', runId: user })
  }
})

t.test('ids that look like separators or prototypes keep threads apart', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, getPrincipal })
  const pairs = [['a', 'b\nc'], ['a\nb', 'c'], ['a', '__proto__'], ['__proto__', 'a'], ['constructor', 'x'], ['a ', 'b'], ['a', ' b']] as const
  for (const [user, threadId] of pairs) {
    const client = await server.run({ threadId, runId: threadId }, { headers: { authorization: Buffer.from(user).toString('base64') } })
    const run = await agent.next()
    run.end()
    t.equal((await eventsOf(client)).at(-1)?.type, 'RUN_FINISHED')
  }
  t.equal(agent.runs.length, pairs.length)
})
