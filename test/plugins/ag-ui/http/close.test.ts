import { type Socket } from 'node:net'
import t from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { checkFrames, checkOrder, type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { readUntil, request, serveApp, type TestServer } from '../../../helpers/ag-ui-app.ts'
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

/** Yields more than any connection takes, for as long as it is asked. */
const firehose: Agent = { name: 'firehose', async * stream () { for (;;) yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(256 * 1024) } } }

/** Resolves when this many connections take nothing more: their peers do not read, and every buffer between is full. */
async function untilStalled (sockets: readonly Socket[], count: number): Promise<void> {
  let seen = ''
  for (let still = 0; still < 50;) {
    await new Promise((resolve) => { setImmediate(resolve) })
    const now = sockets.filter(({ writableNeedDrain }) => writableNeedDrain).map(({ bytesWritten, writableLength }) => `${bytesWritten} ${writableLength}`)
    still = now.length === count && now.join() === seen ? still + 1 : 0
    seen = now.join()
  }
}

/** The server's ends of its connections. */
function socketsOf ({ app }: TestServer): readonly Socket[] {
  const sockets: Socket[] = []
  app.server.on('connection', (socket) => { sockets.push(socket) })
  return sockets
}

/** Everything stays where a client can come back for it. */
const replay = { maxBytes: 256 * 1024 * 1024 }

/**
 * What a client makes of a stream that was ended in the middle: it comes back to the next server with the last id it has. Gives how
 * many frames it had before and gets then; throws where both together are not the run's whole log, byte for byte.
 */
async function comeBack (next: TestServer, threadId: string, had: readonly ReceivedFrame[]): Promise<readonly [before: number, after: number]> {
  const told = had.filter(({ data }) => data !== undefined)
  const lastId = had.at(-1)?.id
  const whole = await (await next.rejoin({ threadId }, `${lastId?.split('.')[0]}.0`)).rest()
  checkFrames(whole)
  const rest = await (await next.rejoin({ threadId }, lastId)).rest()
  const raw = [...told, ...rest].map((frame) => frame.raw).join('')
  if (raw !== whole.map((frame) => frame.raw).join('')) throw new Error(`${told.length} and ${rest.length} frames are not the ${whole.length} of the log`)
  return [told.length, rest.length]
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
  const store = memoryStore()
  const server = await serveApp(t, { agents: { idle, deaf, busy, firehose }, store, replay, concurrency: 'queue', host: { shutdownMs: 1_000 } })
  const sockets = socketsOf(server)
  const open = async (agent: string, count: number, thread = ''): Promise<SseClient[]> => await Promise.all(Array.from({ length: count }, (_, index) =>
    server.run({ threadId: thread === '' ? `${agent}-${index}` : thread, runId: `${agent}-${index}` }, { path: `/agui/run/${agent}` })))

  const clients = [...await open('idle', 15), ...await open('deaf', 5), ...await open('busy', 10), ...await open('idle', 5, 'idle-0')]
  for (let index = 0; index < 10; index++) clients.push(await server.rejoin({ threadId: `idle-${index}` }))
  const stalled = await open('firehose', 5)
  t.equal(clients.length + stalled.length, 50)
  const frames = clients.map((client) => client.rest())
  await untilStalled(sockets, stalled.length)

  const closing = server.app.close()
  // A connection that was accepted before is told to come back, another one is refused.
  const late = await server.run({ threadId: 'late' }).then(async (client) => [client.status, await client.text()], (error: NodeJS.ErrnoException) => error.code)
  t.ok(late === 'ECONNREFUSED' || late === 'ECONNRESET' || (Array.isArray(late) && late[0] === 503), JSON.stringify(late))
  await closing

  const endings = (await Promise.all(frames)).map(endingOf)
  t.strictSame(endings.filter((ending) => ending !== 'RUN_ERROR INTERRUPTED_ERROR' && ending !== 'cursor'), [])
  t.ok(endings.filter((ending) => ending !== 'cursor').length >= 40, `${endings.length} endings: ${endings.filter((ending) => ending === 'cursor').length} cursors`)
  // A connection that takes nothing is dropped at the limit: what its client has of the stream ends anywhere, and its last whole frame is a cursor.
  const next = await serveApp(t, { agents: { firehose }, store, replay })
  for (const [index, client] of stalled.entries()) {
    const had = await client.rest()
    t.equal(client.complete, false)
    t.match(had.at(-1), { id: /^\S+\.\d+$/, data: /^{"type":"TEXT_MESSAGE_CONTENT"/ })
    const [before, after] = await comeBack(next, `firehose-${index}`, had)
    t.ok(before > 0 && after > 0, `${before} frames before, ${after} after`)
  }
  t.strictSame(server.logs.filter(({ level }) => level >= 50), [])
  const before = server.logs.length
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(server.logs.length, before, 'nothing is logged any more')
  for (const { state } of (await store.index.list({}, { limit: 100 })).runs) t.match(state, /cancelled|lost/)
})

t.test('a client that takes nothing until the server says goodbye gets what waits for it, and the cursor of that', async (t) => {
  const store = memoryStore()
  const server = await serveApp(t, { agents: { firehose }, store, replay, host: { shutdownMs: 1_000 } })
  const sockets = socketsOf(server)
  const clients = await Promise.all(Array.from({ length: 5 }, (_, index) => server.run({ threadId: `firehose-${index}` }, { path: '/agui/run/firehose' })))
  await untilStalled(sockets, clients.length)
  // Every run has told its end, and no stream has room for it.
  await server.host.close()
  const closing = server.app.close()
  const frames = await Promise.all(clients.map((client) => client.rest()))
  await closing
  const next = await serveApp(t, { agents: { firehose }, store, replay })
  for (const [index, had] of frames.entries()) {
    t.equal(clients[index]?.complete, true)
    t.equal(endingOf(had), 'cursor')
    const [before, after] = await comeBack(next, `firehose-${index}`, had)
    t.ok(before > 0 && after > 0, `${before} frames before, ${after} after`)
  }
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
