import t from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { checkFrames, checkOrder, type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { readUntil, request, serveApp } from '../../../helpers/ag-ui-app.ts'
import { type ReceivedFrame, type SseClient } from '../../../helpers/sse-client.ts'
import { deferred } from '../../../helpers/sse-server.ts'
import { steered } from '../../../helpers/steered-agent.ts'

/** How a stream that the server ended was ended; throws where a client could not go on from it. */
function endingOf (frames: readonly ReceivedFrame[]): string {
  const told = frames.filter(({ data }) => data !== undefined)
  const events = checkFrames(frames, { whole: false })
  const last = events.at(-1)
  if (last?.type === 'RUN_ERROR' || last?.type === 'RUN_FINISHED') {
    checkOrder(events)
    return last.type === 'RUN_ERROR' ? `${last.type} ${String(last.code)}` : last.type
  }
  const farewell = frames.at(-1)
  if (farewell?.retry === undefined || farewell.id !== told.at(-1)?.id) throw new Error(`No cursor: ${JSON.stringify(farewell)}`)
  return 'cursor'
}

t.test('closing with fifty streams of every kind ends each with its terminal or a cursor, and logs no error', async (t) => {
  const idle = steered()
  const deaf = steered({ deaf: true })
  const busy: Agent = {
    name: 'busy',
    async * stream (_input, { signal }) {
      while (!signal.aborted) {
        yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' }
        await new Promise((resolve) => { setImmediate(resolve) })
      }
    }
  }
  const firehose: Agent = { name: 'firehose', async * stream () { for (;;) yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(256 * 1024) } } }
  const store = memoryStore()
  const server = await serveApp(t, { agents: { idle, deaf, busy, firehose }, store, concurrency: 'queue', host: { shutdownMs: 1_000 } })
  const open = async (agent: string, count: number, thread = ''): Promise<SseClient[]> => await Promise.all(Array.from({ length: count }, (_, index) =>
    server.run({ threadId: thread === '' ? `${agent}-${index}` : thread, runId: `${agent}-${index}` }, { path: `/agui/run/${agent}` })))

  const clients = [...await open('idle', 15), ...await open('deaf', 5), ...await open('busy', 10), ...await open('idle', 5, 'idle-0')]
  for (let index = 0; index < 10; index++) clients.push(await server.rejoin({ threadId: `idle-${index}` }))
  const stalled = await open('firehose', 5)
  t.equal(clients.length + stalled.length, 50)
  const frames = clients.map((client) => client.rest())

  const closing = server.app.close()
  // A connection that was accepted before is told to come back, another one is refused.
  const late = await server.run({ threadId: 'late' }).then(async (client) => [client.status, await client.text()], (error: NodeJS.ErrnoException) => error.code)
  t.ok(late === 'ECONNREFUSED' || late === 'ECONNRESET' || (Array.isArray(late) && late[0] === 503), JSON.stringify(late))
  await closing

  const endings = (await Promise.all(frames)).map(endingOf)
  t.strictSame(endings.filter((ending) => ending !== 'RUN_ERROR INTERRUPTED_ERROR' && ending !== 'cursor'), [])
  t.ok(endings.filter((ending) => ending !== 'cursor').length >= 40, `${endings.length} endings: ${endings.filter((ending) => ending === 'cursor').length} cursors`)
  for (const client of stalled) await client.destroy()
  t.strictSame(server.logs.filter(({ level }) => level >= 50), [])
  const before = server.logs.length
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(server.logs.length, before, 'nothing is logged any more')
  for (const { state } of (await store.index.list({}, { limit: 100 })).runs) t.match(state, /cancelled|lost/)
})

t.test('closing with no stream, and closing twice, resolves at once', async (t) => {
  const server = await serveApp(t, { agent: steered() })
  await Promise.all([server.app.close(), server.app.close()])
  t.strictSame(server.logs.filter(({ level }) => level >= 40), [])
})

t.test('a run that was cut by a shutdown can be rejoined on the next server of the same store', async (t) => {
  const store = memoryStore()
  const agent = steered()
  const first = await serveApp(t, { agent, store })
  const client = await first.run()
  const run = await agent.next()
  run.say('before the end')
  const seen = await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  const rest = client.rest()
  await first.app.close()
  const frames = [...seen, ...await rest].filter(({ data }) => data !== undefined)

  const second = await serveApp(t, { agent, store })
  t.strictSame(await (await second.rejoin({ threadId: 'thread' }, seen.at(-1)?.id)).rest(), frames.slice(seen.length))
  const next = await second.run({ runId: 'next' });
  (await agent.next()).end()
  t.match((await next.rest()).map(({ data }) => JSON.parse(data ?? '') as WireEvent).at(-1), { type: 'RUN_FINISHED', runId: 'next' })
})

t.test('a request that was being prepared when the server closed is refused with 503, and starts nothing', async (t) => {
  const agent = steered()
  const asked = deferred<undefined>()
  const answer = deferred<undefined>()
  const server = await serveApp(t, { agent, getPrincipal: async () => { asked.resolve(undefined); await answer.promise; return { id: 'a' } } })
  const reply = server.app.inject({ method: 'POST', url: '/agui/run', payload: request() })
  await asked.promise
  // The first thing that closing the server does.
  await server.host.close()
  answer.resolve(undefined)
  const response = await reply
  t.equal(response.statusCode, 503)
  t.match(response.json(), { error: { code: 'SERVICE_UNAVAILABLE' } })
  t.strictSame(agent.runs, [])
})

t.test('agents of factories are closed with the server, shared ones are not', async (t) => {
  const shared = steered()
  const made = steered({ name: 'made' })
  const server = await serveApp(t, { agents: { shared, made: () => made } })
  const clients = [await server.run({ threadId: 'a' }, { path: '/agui/run/shared' }), await server.run({ threadId: 'b' }, { path: '/agui/run/made' })]
  await shared.next()
  await made.next()
  const read = clients.map((client) => client.rest())
  await server.app.close()
  await Promise.all(read)
  t.strictSame([shared.closed, made.closed], [0, 1])
})
