import t from 'tap'
import { FaultPlan, faultyStore, logEvent, memoryStore } from '../../../../lib/stores/index.ts'
import { checkFrames, checkOrder, typesOf, type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, readUntil, request, serveApp, snapshotOf, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { type ReceivedFrame, type SseClient } from '../../../helpers/sse-client.ts'
import { scripted, steered, type Steered, type SteeredRun } from '../../../helpers/steered-agent.ts'

const textOf = (events: readonly WireEvent[]): string => events.map((event) => event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '').join('')
const isText = (delta: string) => (event: WireEvent): boolean => event.type === 'TEXT_MESSAGE_CONTENT' && event.delta === delta

/** A run that has told some words and goes on; its client has read them. */
async function running (server: TestServer, agent: Steered, words: number, input: object = {}): Promise<{ readonly client: SseClient, readonly run: SteeredRun, readonly seen: ReceivedFrame[] }> {
  const client = await server.run({ ...input })
  const run = await agent.next()
  for (let index = 1; index <= words; index++) run.say(`w${index} `)
  const seen = await readUntil(client, isText(`w${words} `))
  return { client, run, seen }
}

t.test('a cursor gives exactly the remaining frames, while the run goes on and after it has ended', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const { client, run, seen } = await running(server, agent, 5)
  const readers = await Promise.all(seen.map(({ id }) => server.rejoin({ threadId: 'thread' }, id)))
  run.say('last')
  run.end()
  const frames = [...seen, ...await client.rest()]
  checkFrames(frames)
  for (const [index, reader] of readers.entries()) t.strictSame(await reader.rest(), frames.slice(index + 1))
  for (const [index, { id }] of frames.entries()) t.strictSame(await (await server.rejoin({ threadId: 'thread' }, id)).rest(), frames.slice(index + 1))
})

t.test('the cursor may come in the body; the header wins', async (t) => {
  const agent = scripted([{ type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x' }])
  const server = await serveApp(t, { agent })
  const frames = await (await server.run()).rest()
  const [first, second] = frames
  t.strictSame(await (await server.rejoin({ threadId: 'thread', lastSeenEventId: first?.id })).rest(), frames.slice(1))
  t.strictSame(await (await server.rejoin({ threadId: 'thread', lastSeenEventId: first?.id }, second?.id)).rest(), frames.slice(2))
  t.strictSame(await (await server.rejoin({ ...request(), lastSeenEventId: null }, second?.id)).rest(), frames.slice(2))
})

t.test('without a cursor a running run is told from its first frame', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const { client, run, seen } = await running(server, agent, 3)
  const reader = await server.rejoin({ threadId: 'thread' })
  run.end()
  t.strictSame(await reader.rest(), [...seen, ...await client.rest()])
})

t.test('without a cursor a finished run is told as one run of snapshots', async (t) => {
  const agent = scripted([
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'One ' },
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'two.' }
  ])
  const server = await serveApp(t, { agent })
  const client = await server.run({ state: { a: 1 }, parentRunId: 'before' })
  const last = (await client.rest()).at(-1)
  const reader = await server.rejoin({ threadId: 'thread' })
  const frames = await reader.rest()
  t.strictSame(frames.map(({ id }) => id), [undefined, undefined, undefined, last?.id])
  t.strictSame(frames.map(({ data }) => JSON.parse(data ?? '')), [
    { type: 'RUN_STARTED', threadId: 'thread', runId: 'run', protocolVersion: '1.0', parentRunId: 'before' },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'Hi' }, { id: 'r', role: 'assistant', content: 'One two.' }] },
    { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } },
    { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome: { type: 'success' } }
  ])
})

t.test('a thread that is not known is an empty finished run', async (t) => {
  const server = await serveApp(t, { agent: scripted([]) })
  t.strictSame(await eventsOf(await server.rejoin({ threadId: 'nobody', runId: 'r' }, 'abc.5'), { ids: false }), [
    { type: 'RUN_STARTED', threadId: 'nobody', runId: 'r', protocolVersion: '1.0' },
    { type: 'RUN_FINISHED', threadId: 'nobody', runId: 'r' }
  ])
  const [started] = await eventsOf(await server.rejoin({ threadId: 'nobody' }), { ids: false })
  t.match(started, { runId: /^[\w-]{36}$/ })
})

t.test('just outside what is kept a cursor gets a snapshot, just inside it gets the rest, ahead of it a snapshot', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, replay: { maxEvents: 16 } })
  const { client, run, seen } = await running(server, agent, 400)
  const topic = (await server.host.engine.lastOf({}, 'ag-ui', 'thread'))?.topic
  const oldest = topic?.oldest ?? 0
  const epoch = topic?.epoch ?? ''
  t.ok(oldest > 1, `${oldest} is the oldest of ${seen.length} kept`)
  const at = async (seq: number): Promise<SseClient> => await server.rejoin({ threadId: 'thread' }, `${epoch}.${seq}`)
  const inside = await at(oldest - 1)
  const atHead = await at(seen.length)
  const outside = [await at(oldest - 2), await at(seen.length + 1), await at(0), await server.rejoin({ threadId: 'thread' })]
  run.say('end')
  run.end()
  const frames = [...seen, ...await client.rest()]
  t.strictSame(await inside.rest(), frames.slice(oldest - 1))
  t.strictSame(await atHead.rest(), frames.slice(seen.length))
  const said = textOf(checkFrames(frames))
  for (const reader of outside) {
    const events = await snapshotOf(reader)
    t.strictSame(typesOf(events), ['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'])
    const [, snapshot] = events
    t.equal(snapshot?.type === 'MESSAGES_SNAPSHOT' && String(snapshot.messages.at(-1)?.content) + textOf(events), said)
  }
})

t.test('a cursor that is none, or of another life, is not mistaken for one', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const { client, run, seen } = await running(server, agent, 2)
  const epoch = seen[0]?.id?.split('.')[0] ?? ''
  const cursors = ['x', '-1', '3', `${epoch}.`, `${epoch}.-1`, `${epoch}.1e1`, `${epoch}.1.1`, ` ${epoch}.1x`, `${epoch}.0x1`, 'otherepoch.2', `${epoch}x.2`, '.2', '..', '9'.repeat(400)]
  const readers = await Promise.all(cursors.map((cursor) => server.rejoin({ threadId: 'thread' }, cursor)))
  run.end()
  const frames = [...seen, ...await client.rest()]
  // Every frame is still kept: who has no cursor starts at the first one.
  for (const [index, reader] of readers.entries()) t.strictSame(await reader.rest(), frames, String(cursors[index]))
})

t.test('a cursor of an earlier run of the thread gives the rest of that run', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const one = await running(server, agent, 3)
  one.run.end()
  const earlier = [...one.seen, ...await one.client.rest()]
  const two = await running(server, agent, 2, { runId: 'two' })
  t.strictSame(await (await server.rejoin({ threadId: 'thread' }, earlier[1]?.id)).rest(), earlier.slice(2))
  // Also when the client names the newer run: the cursor says what it has seen.
  t.strictSame(await (await server.rejoin({ threadId: 'thread', runId: 'two' }, earlier[1]?.id)).rest(), earlier.slice(2))
  const reader = await server.rejoin({ threadId: 'thread' })
  two.run.end()
  t.strictSame(await reader.rest(), [...two.seen, ...await two.client.rest()])
})

t.test('a named run is told if the thread has it, otherwise the last one', async (t) => {
  const server = await serveApp(t, { agent: scripted([]) })
  for (const runId of ['one', 'two', 'three']) await (await server.run({ runId })).text()
  for (const [asked, told] of [['one', 'one'], ['two', 'two'], ['three', 'three'], ['four', 'three'], [undefined, 'three']]) {
    const [started] = await snapshotOf(await server.rejoin({ threadId: 'thread', runId: asked }))
    t.match(started, { runId: told })
  }
})

t.test('a run that waits its turn is joined before it says anything', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, concurrency: 'queue' })
  const first = await server.run()
  const busy = await agent.next()
  const second = await server.run({ runId: 'second' })
  const reader = await server.rejoin({ threadId: 'thread', runId: 'second' })
  busy.end()
  const run = await agent.next()
  run.say('now')
  run.end()
  await first.rest()
  t.strictSame(await reader.rest(), await second.rest())
})

t.test('who joins in the middle goes on with what is open: text, reasoning and a call', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, enableReasoning: true, replay: { maxEvents: 4 } })
  const client = await server.run()
  const run = await agent.next()
  run.push(
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', delta: 'Text ' },
    { type: 'THINKING_BLOCK_DELTA', replyId: 'r2', delta: 'Thought ' },
    { type: 'TOOL_CALL_START', replyId: 'r3', toolCallId: 'c1', toolCallName: 'f' },
    { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '{"a":' }
  )
  for (let index = 0; index < 300; index++) run.push({ type: 'CUSTOM', name: 'tick', value: { index } })
  const seen = await readUntil(client, (event) => event.type === 'CUSTOM' && JSON.stringify(event.value).includes('299'))
  const reader = await server.rejoin({ threadId: 'thread' })
  const open = await reader.until(({ id }) => id !== undefined)
  const reopened = open.map(({ data }) => JSON.parse(data ?? '') as WireEvent)
  t.strictSame(typesOf(reopened).slice(0, 2), ['RUN_STARTED', 'MESSAGES_SNAPSHOT'])
  run.push(
    { type: 'TEXT_BLOCK_DELTA', replyId: 'r1', delta: 'goes on.' },
    { type: 'THINKING_BLOCK_DELTA', replyId: 'r2', delta: 'too.' },
    { type: 'TOOL_CALL_DELTA', toolCallId: 'c1', delta: '1}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' }
  )
  run.end()
  const rest = await reader.rest()
  t.strictSame(rest, [...seen, ...await client.rest()].slice(seen.length), 'the live part is the same frames')
  checkOrder([...reopened, ...checkFrames(rest, { whole: false })])
})

t.test('twenty readers that come back at random while the run tells a hundred more miss and repeat nothing', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const { client, run, seen } = await running(server, agent, 100)
  const readers: Promise<SseClient>[] = []
  for (let index = 0; index < 100; index++) {
    if (index % 5 === 0) readers.push(server.rejoin({ threadId: 'thread' }, seen[(index * 37) % seen.length]?.id))
    run.say(`late ${index} `)
    await new Promise((resolve) => { setImmediate(resolve) })
  }
  run.end()
  const frames = [...seen, ...await client.rest()]
  for (const [index, reader] of readers.entries()) {
    const from = ((index * 5 * 37) % seen.length) + 1
    t.strictSame((await (await reader).rest()).map(({ raw }) => raw), frames.slice(from).map(({ raw }) => raw))
  }
})

t.test('a reader that stalls is cut with a cursor and delays nobody', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, replay: { maxBytes: 64 * 1024 * 1024 } })
  const client = await server.run()
  const run = await agent.next()
  const stalled = await server.rejoin({ threadId: 'thread' })
  const big = 'x'.repeat(256 * 1024)
  for (let index = 0; index < 80; index++) run.say(big)
  run.end()
  const frames = await client.rest()
  t.equal(checkFrames(frames).at(-1)?.type, 'RUN_FINISHED')
  // It comes back where it was cut, as often as it takes.
  const read: ReceivedFrame[] = []
  let reader = stalled
  for (let tries = 0; tries < 50; tries++) {
    read.push(...(await reader.rest()).filter(({ data }) => data !== undefined))
    if (read.length >= frames.length) break
    reader = await server.rejoin({ threadId: 'thread' }, read.at(-1)?.id)
  }
  t.strictSame(read.map(({ id }) => id), frames.map(({ id }) => id))
})

t.test('connect is refused as run is: its own input, Accept, and nothing started', async (t) => {
  const agent = scripted([])
  const server = await serveApp(t, { agent })
  for (const body of [{}, { threadId: '' }, { threadId: 1 }, { threadId: 't', runId: 1 }, { threadId: 't', runId: ' ' }, { threadId: 't', lastSeenEventId: 1 }]) {
    const response = await server.app.inject({ method: 'POST', url: '/agui/connect', payload: body })
    t.match(response, { statusCode: 400 })
    t.match(response.json(), { error: { code: 'INVALID_INPUT_ERROR' } })
  }
  t.strictSame(agent.calls, [])
})

t.test('a cursor of what was told and never stored gets the snapshot and the end, not what was stored in its place', async (t) => {
  const agent = steered()
  const store = memoryStore()
  const first = await serveApp(t, { agent, store })
  const other = await serveApp(t, { agent, store })
  const { client, run, seen } = await running(first, agent, 3)
  const record = (await first.host.engine.lastOf({}, 'ag-ui', 'thread'))?.record
  if (record === undefined) return t.fail()
  // Another node takes the run for lost, and ends it.
  const { key, epoch } = record
  await store.leases.release(key, record.fence)
  const taken = await store.leases.takeover(key, { node: 'other', op: 'take', ms: 1_000 })
  if (taken.kind !== 'taken') return t.fail()
  const end = { type: 'RUN_ERROR', message: 'The node is gone.', code: 'NODE_LOST' }
  t.equal(taken.last, seen.length)
  await store.runs.commit(key, { version: taken.record.version, fence: taken.fence, op: 'end' }, {
    patch: { state: 'lost', end: { kind: 'lost', code: 'NODE_LOST' }, endedAt: Date.now() },
    firstSeq: taken.last + 1,
    events: [logEvent(taken.last + 1, JSON.stringify(end))]
  })
  run.say('unstored')
  run.say('as well')
  const told = await client.rest()
  t.match(told.map(({ id }) => id).slice(0, 1), [`${epoch}.${seen.length + 1}`], 'told ahead of the store')
  const id = `${epoch}-2.${seen.length + 1}`
  for (const server of [first, other]) {
    for (const stale of [...told.map((frame) => frame.id), `${epoch}-3.2`]) {
      // The lost run was in the middle of its text, which an error may leave open.
      const frames = await (await server.rejoin({ threadId: 'thread' }, stale)).rest()
      const events = frames.map(({ data }) => JSON.parse(data ?? '') as WireEvent)
      t.strictSame(typesOf(events), ['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'TEXT_MESSAGE_START', 'RUN_ERROR'], String(stale))
      const [, snapshot] = events
      t.equal(snapshot?.type === 'MESSAGES_SNAPSHOT' && snapshot.messages.at(-1)?.content, 'w1 w2 w3 ')
      t.match(events.at(-1), end)
      t.equal(frames.at(-1)?.id, id)
    }
    for (const [index, frame] of seen.entries()) {
      const frames = await (await server.rejoin({ threadId: 'thread' }, frame.id)).rest()
      t.strictSame(frames.slice(0, -1), seen.slice(index + 1), 'what was stored keeps its id')
      t.match(frames.at(-1), { id, data: JSON.stringify(end) })
    }
    t.strictSame(await (await server.rejoin({ threadId: 'thread' }, id)).rest(), [])
  }
})

t.test('a reader who was told what is not stored yet and comes back goes on behind it as soon as it is', async (t) => {
  const memory = memoryStore()
  const plan = new FaultPlan()
  const agent = steered()
  const server = await serveApp(t, { agent, onDisconnect: 'continue', store: faultyStore(memory, plan) })
  const caller = await server.run()
  const run = await agent.next()
  run.say('stored')
  const first = await readUntil(caller, isText('stored'))
  const append = plan.hold('log.append')
  run.say('ahead')
  const ahead = await readUntil(caller, isText('ahead'))
  await caller.destroy()
  const coming = server.rejoin({ threadId: 'thread' }, ahead.at(-1)?.id)
  await new Promise<void>((resolve) => { setTimeout(resolve, 20) })
  append.release()
  run.say('behind')
  run.end()
  const events = checkFrames(await (await coming).rest(), { whole: false })
  t.match(events[0], { type: 'TEXT_MESSAGE_CONTENT', delta: 'behind' })
  t.equal(events.at(-1)?.type, 'RUN_FINISHED')
  checkFrames([...first, ...ahead], { whole: false })
})
