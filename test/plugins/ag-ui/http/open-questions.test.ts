// Questions outlive the page, the run that answered them in vain, and the server.
import t, { type Test } from 'tap'
import { type Agent } from '../../../../lib/agent/index.ts'
import { memoryStore, type Store, wrapStore } from '../../../../lib/stores/index.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, readUntil, serveApp, snapshotOf, type AppOptions, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { answer, approving, noted, type Approving, type NotedTool } from '../../../helpers/approving-agent.ts'
import { steered } from '../../../helpers/steered-agent.ts'

const USER = { id: 'u1', role: 'user', content: 'del {"path":"a"}' }
const ASKED = [USER, { id: 'reply-u1', role: 'assistant', toolCalls: [{ id: 'u1-1', type: 'function', function: { name: 'del', arguments: '{"path":"a"}' } }] }]
const ID = 'reply-u1:u1-1'
const YES = [answer(ID, { approved: true })]

interface Asked { readonly server: TestServer, readonly agent: Approving, readonly tool: NotedTool, readonly outcome: unknown }

async function asked (t: Test, options: AppOptions = {}): Promise<Asked> {
  const tool = noted('del')
  const agent = approving([tool])
  const server = await serveApp(t, { agent, ...options })
  const terminal = (await eventsOf(await server.run({ messages: [USER] }))).at(-1)
  return { server, agent, tool, outcome: terminal?.type === 'RUN_FINISHED' && terminal.outcome }
}

/** What a page is shown that kept nothing. */
async function shown (server: TestServer, input: object = {}): Promise<WireEvent[]> {
  return await snapshotOf(await server.rejoin({ threadId: 'thread', ...input }))
}

t.test('a reloaded page is shown the transcript and the open question, and answers it', async (t) => {
  const { server, tool, outcome } = await asked(t)
  for (const input of [{}, { runId: 'run' }, { runId: 'unknown' }]) {
    t.strictSame(await shown(server, input), [
      { type: 'RUN_STARTED', threadId: 'thread', runId: 'run', protocolVersion: '1.0' },
      { type: 'MESSAGES_SNAPSHOT', messages: ASKED },
      { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome }
    ])
  }
  const events = await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: YES }))
  t.strictSame(tool.ran, [{ path: 'a' }])

  // Afterwards nothing is open, whichever run is asked for.
  const result = { id: 'act-two:u1-1', role: 'tool', toolCallId: 'u1-1', content: 'del ok' }
  t.strictSame(await shown(server), [
    { type: 'RUN_STARTED', threadId: 'thread', runId: 'two', protocolVersion: '1.0' },
    { type: 'MESSAGES_SNAPSHOT', messages: [...ASKED, result, { id: 'act-two-done', role: 'assistant', content: 'Done.' }] },
    events.at(-1)
  ])
  t.strictSame((await shown(server, { runId: 'run' })).slice(1), [
    { type: 'MESSAGES_SNAPSHOT', messages: ASKED },
    { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run' }
  ])
})

t.test('a page that knows the last frame is told nothing again', async (t) => {
  const { server } = await asked(t)
  const frames = await (await server.run({ messages: [USER] })).rest()
  t.strictSame(await (await server.rejoin({ threadId: 'thread' }, frames.at(-2)?.id)).rest(), frames.slice(-1))
  t.strictSame(await (await server.rejoin({ threadId: 'thread' }, frames.at(-1)?.id)).rest(), [])
})

t.test('while the answer is being worked on, a page that rejoins follows that', async (t) => {
  let finish = (_result: string): void => {}
  const result = new Promise<string>((resolve) => { finish = resolve })
  const tool = noted('del', { execute: async () => await result })
  const server = await serveApp(t, { agent: approving([tool]) })
  await eventsOf(await server.run({ messages: [USER] }))
  const answering = await server.run({ runId: 'two', messages: ASKED, resume: YES })
  await readUntil(answering, ({ type }) => type === 'RUN_STARTED')
  const reader = await server.rejoin({ threadId: 'thread' })
  finish('slow')
  const events = await eventsOf(reader)
  t.match(events[0], { runId: 'two' })
  t.match(events.at(-1), { outcome: { type: 'success' } })
})

t.test('a page that rejoins while somebody answers is shown the thread of one moment', async (t) => {
  let meanwhile: (() => Promise<unknown>) | undefined
  const store = wrapStore(memoryStore(), async (operation, run) => {
    const act = operation === 'interrupts.open' ? meanwhile : undefined
    if (act !== undefined) meanwhile = undefined
    // Read before it is answered, and looked at after.
    const result = await run()
    await act?.()
    return result
  })
  const { server } = await asked(t, { store })
  meanwhile = async () => await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: YES }))
  const events = await shown(server)
  t.match(events[0], { runId: 'two' })
  t.strictSame(events.at(-1), { type: 'RUN_FINISHED', threadId: 'thread', runId: 'two', outcome: { type: 'success' } })
})

t.test('of two pages that answer at once, with runs queued, one is told that the other was faster', async (t) => {
  const { server, tool } = await asked(t, { concurrency: 'queue' })
  const ends = await Promise.all([true, false].map(async (approved) => {
    const frames = await (await server.run({ runId: String(approved), messages: ASKED, resume: [answer(ID, { approved })] })).rest()
    return JSON.parse(frames.at(-1)?.data ?? '') as WireEvent
  }))
  const isApproved = ends[0]?.type === 'RUN_FINISHED'
  t.match(ends[isApproved ? 0 : 1], { type: 'RUN_FINISHED', outcome: { type: 'success' } })
  t.match(ends[isApproved ? 1 : 0], { type: 'RUN_ERROR', code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
  t.strictSame(tool.ran, isApproved ? [{ path: 'a' }] : [])
})

t.test('an answer whose agent could not even be made leaves the question open', async (t) => {
  const tool = noted('del')
  let isBroken = false
  const made: Approving[] = []
  const server = await serveApp(t, {
    agents: {
      agent: () => {
        if (isBroken) throw new Error('no database')
        const agent = approving([tool])
        made.push(agent)
        return agent
      }
    }
  })
  const terminal = (await eventsOf(await server.run({ messages: [USER] }))).at(-1)
  isBroken = true
  t.match((await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: YES }))).at(-1), { type: 'RUN_ERROR', code: 'INTERNAL_ERROR' })
  t.match(await server.host.engine.openInterrupts({}, 'ag-ui', 'thread'), [{ id: ID, state: 'open' }])
  // Official clients keep the question too, and so does a reloaded page: the last run did not answer it.
  const outcome = terminal?.type === 'RUN_FINISHED' && terminal.outcome
  t.strictSame((await shown(server)).at(-1), { type: 'RUN_FINISHED', threadId: 'thread', runId: 'two', outcome: { ...outcome || {}, interrupts: [{ ...outcome && outcome.type === 'interrupt' && outcome.interrupts[0] }] } })
  isBroken = false
  t.match((await eventsOf(await server.run({ runId: 'three', messages: ASKED, resume: YES }))).at(-1), { outcome: { type: 'success' } })
  t.strictSame(tool.ran, [{ path: 'a' }])
  t.equal(made.length, 2)
})

t.test('a question survives an error of another run, and what refuses a request', async (t) => {
  const { server, tool } = await asked(t)
  const document = { id: 'u2', role: 'user', content: [{ type: 'document', source: { type: 'url', value: 'https://example.org/a.pdf' } }] }
  t.match((await eventsOf(await server.run({ runId: 'two', messages: [...ASKED, document], resume: YES }), { ids: false }))[1], { code: 'INVALID_INPUT_ERROR' })
  t.match((await eventsOf(await server.run({ threadId: 'other', messages: [USER] }))).at(-1), { outcome: { type: 'interrupt' } })
  t.match((await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: YES }))).at(-1), { outcome: { type: 'success' } })
  t.strictSame(tool.ran, [{ path: 'a' }])
  t.match(await server.host.engine.openInterrupts({}, 'ag-ui', 'other'), [{ id: ID, state: 'open' }], 'threads are independent')
})

t.test('an answer that failed half-way is not repeated; its client gets on by giving it up', async (t) => {
  const ran: string[] = []
  const asking = approving([noted('del')])
  const failing: Agent = {
    ...asking,
    stream: async function * (input, context) {
      if (input.resume === undefined) return yield * asking.stream(input, context)
      ran.push('half')
      throw new Error('power cut')
    }
  }
  const server = await serveApp(t, { agent: failing })
  await eventsOf(await server.run({ messages: [USER] }))
  t.match((await eventsOf(await server.run({ runId: 'two', messages: ASKED, resume: YES }))).at(-1), { type: 'RUN_ERROR' })
  t.match((await shown(server)).at(-1), { type: 'RUN_ERROR' })
  const next = [...ASKED, { id: 'u2', role: 'user', content: 'And now?' }]
  const closed = { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: `The thread has no open interrupt that resume could answer: ${ID}.` }
  t.match((await eventsOf(await server.run({ runId: 'three', messages: next, resume: YES }), { ids: false }))[1], closed)
  t.match((await eventsOf(await server.run({ runId: 'three', messages: next, resume: [answer('x', undefined, 'cancelled')] }), { ids: false }))[1], { code: closed.code })
  t.match((await eventsOf(await server.run({ runId: 'three', messages: next, resume: [answer(ID, undefined, 'cancelled')] }))).at(-1), { outcome: { type: 'success' } })
  t.strictSame(ran, ['half'])
})

t.test('an answer that was stopped half-way is given up alike', async (t) => {
  const agent = steered({ capabilities: { resume: true } })
  const server = await serveApp(t, { agent })
  const client = await server.run({ messages: [USER] })
  const first = await agent.next()
  first.push({ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'del', input: {} }] })
  first.end()
  await client.rest()
  const answering = await server.run({ runId: 'two', resume: [answer('r:c', { approved: true })] })
  await agent.next()
  await server.stop('thread')
  t.match((await answering.rest()).map(({ data }) => JSON.parse(data ?? '') as WireEvent).at(-1), { outcome: { type: 'cancelled' } })
  const next = await server.run({ runId: 'three', resume: [answer('r:c', undefined, 'cancelled')] })
  const third = await agent.next()
  t.strictSame(third.input.resume, undefined)
  third.end()
  t.match((await eventsOf(next)).at(-1), { outcome: { type: 'success' } })
})

t.test('a waiting answer that is superseded before its turn leaves the question open', async (t) => {
  const agent = steered({ capabilities: { resume: true } })
  const server = await serveApp(t, { agent, concurrency: 'queue' })
  const ask = await server.run({ messages: [USER] })
  const first = await agent.next()
  first.push({ type: 'REQUIRE_USER_CONFIRM', replyId: 'r', toolCalls: [{ type: 'tool_use', id: 'c', name: 'del', input: {} }] })
  first.end()
  await ask.rest()
  // Somebody else holds the thread: the answer is claimed, and waits.
  const ticket = await server.store.gates.enter({}, 'thread', { id: 'other', ms: 60_000 })
  t.match(ticket, { kind: 'in', head: true })
  const answering = await server.run({ runId: 'two', resume: [answer('r:c', { approved: true })] })
  t.match(await server.host.engine.openInterrupts({}, 'ag-ui', 'thread'), [])
  await server.stop('thread')
  await answering.rest()
  t.match(await server.host.engine.openInterrupts({}, 'ag-ui', 'thread'), [{ id: 'r:c', state: 'open' }])
  t.equal(agent.runs.length, 1)
})

t.test('a question whose server was lost with its agent has expired: a page is told, and gives it up', async (t) => {
  const { server, tool } = await asked(t)
  const { store } = server
  const [run] = (await store.index.list({}, { protocol: 'ag-ui', limit: 1 })).runs
  if (run === undefined) throw new Error('There is no run.')
  // What a node does that finds it (R14).
  const taken = await store.leases.acquire(run.key, { node: 'other', op: 'a', ms: 1_000 })
  if (taken.kind !== 'acquired') throw new Error(taken.kind)
  const { record: { version, lastSeq }, fence } = taken
  const end = { kind: 'lost', code: 'NODE_LOST', message: 'The server that ran this was lost.' }
  await store.runs.commit(run.key, { version, fence, op: 'b' }, { patch: { state: 'lost', end, endedAt: 7 }, firstSeq: lastSeq + 1, events: [], closeInterrupts: true })

  t.strictSame((await shown(server)).slice(1), [
    { type: 'MESSAGES_SNAPSHOT', messages: ASKED },
    { type: 'RUN_ERROR', code: 'NODE_LOST', message: end.message, timestamp: 7 }
  ])
  const next = [...ASKED, { id: 'u2', role: 'user', content: 'And now?' }]
  const expired = { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: `The interrupt has expired and can only be cancelled: ${ID}.` }
  t.match((await eventsOf(await server.run({ runId: 'two', messages: next, resume: YES }), { ids: false }))[1], expired)
  t.match((await eventsOf(await server.run({ runId: 'two', messages: next, resume: [answer('x', { approved: true })] }), { ids: false }))[1], { message: 'The thread has no open interrupt that resume could answer: x.' })
  t.match((await eventsOf(await server.run({ runId: 'two', messages: next, resume: [answer(ID, undefined, 'cancelled')] }))).at(-1), { outcome: { type: 'success' } })
  t.strictSame(tool.ran, [])
})

/** The server once more, on what the store has kept. */
async function restart (t: Test, store: Store, { server, tool }: Pick<Asked, 'server' | 'tool'>, options: AppOptions = {}): Promise<Asked> {
  await server.app.close()
  const agent = approving([tool])
  return { server: await serveApp(t, { agent, store, ...options }), agent, tool, outcome: undefined }
}

t.test('a question survives a restart where its store does', async (t) => {
  for (const [payload, ran, content] of [[{ approved: true }, [{ path: 'a' }], 'del ok'], [{ approved: true, editedArgs: { path: 'b' } }, [{ path: 'b' }], 'del ok'], [{ approved: false, reason: 'no' }, [], 'no']] as const) {
    const store = memoryStore()
    const before = await asked(t, { store })
    const after = await restart(t, store, before)
    t.strictSame((await shown(after.server)).slice(1), [
      { type: 'MESSAGES_SNAPSHOT', messages: ASKED },
      { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run', outcome: before.outcome }
    ])
    const [, error] = await eventsOf(await after.server.run({ runId: 'two' }), { ids: false })
    t.match(error, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: `The thread has unresolved interrupts, and this run answers none of them: ${ID}.` })
    const events = await eventsOf(await after.server.run({ runId: 'two', messages: [], resume: [answer(ID, payload)] }))
    t.match(events.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ toolCallId: 'u1-1', content }])
    t.strictSame(before.tool.ran, ran)
    t.strictSame(after.agent.inputs[0]?.messages.map(({ id }) => id), ['u1', 'reply-u1'])

    // And once more: the answer was given, and is not taken again.
    const last = await restart(t, store, after)
    t.strictSame(await eventsOf(await last.server.run({ runId: 'two', messages: [], resume: [answer(ID, payload)] })), events, 'the same request is shown its run')
    t.match((await eventsOf(await last.server.run({ runId: 'three', resume: [answer(ID, payload)] }), { ids: false }))[1], { code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
    t.strictSame(before.tool.ran, ran)
  }
})

t.test('a question runs out over a restart too', async (t) => {
  let now = Date.now()
  const store = memoryStore({ now: () => now })
  const before = await asked(t, { store, interruptTtlMs: 60_000 })
  now += 120_000
  const { server } = await restart(t, store, before)
  t.match((await shown(server)).at(-1), { outcome: { interrupts: [{ id: ID, expiresAt: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ }] } })
  t.match((await eventsOf(await server.run({ runId: 'two', messages: [], resume: YES }), { ids: false }))[1], { message: `The interrupt has expired and can only be cancelled: ${ID}.` })
  t.match((await eventsOf(await server.run({ runId: 'two', messages: [], resume: [answer(ID, undefined, 'cancelled')] }))).at(-1), { outcome: { type: 'success' } })
})

t.test('of two servers on one store that are answered at once, one does it', async (t) => {
  const { server, agent, tool } = await asked(t)
  const other = await serveApp(t, { agent, store: server.store })
  const answers = [[server, 'one', true], [other, 'two', false]] as const
  const ends = await Promise.all(answers.map(async ([node, runId, approved]) => {
    const frames = await (await node.run({ runId, messages: ASKED, resume: [answer(ID, { approved })] })).rest()
    return JSON.parse(frames.at(-1)?.data ?? '') as WireEvent
  }))
  t.strictSame(ends.map((event) => event.type).sort(), ['RUN_ERROR', 'RUN_FINISHED'])
  t.match(ends.find(({ type }) => type === 'RUN_ERROR'), { code: 'AGUI_INTERRUPT_CONTRACT_ERROR' })
  t.strictSame(tool.ran, ends[0]?.type === 'RUN_FINISHED' ? [{ path: 'a' }] : [])
  t.equal(agent.inputs.length, 2)
})

t.test('another prefix on the same store shows and takes the question', async (t) => {
  const tool = noted('del')
  const agent = approving([tool])
  const server = await serveApp(t, { agent })
  const other = await serveApp(t, { agent, store: server.store, prefix: '/other' })
  await eventsOf(await server.run({ messages: [USER] }))
  t.match((await eventsOf(await other.run({ runId: 'two', messages: ASKED, resume: YES }))).at(-1), { outcome: { type: 'success' } })
  t.strictSame(tool.ran, [{ path: 'a' }])
})
