// The contract between a thread's open interrupts and the requests that answer them, row by row (ag-ui 20.5).
import t, { type Test } from 'tap'
import { memoryStore } from '../../../../lib/stores/index.ts'
import { type WireEvent } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, request, serveApp, type AppOptions, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { answer, approving, noted, type Approving, type NotedTool } from '../../../helpers/approving-agent.ts'
import { scripted, steered } from '../../../helpers/steered-agent.ts'

const USER = { id: 'u1', role: 'user', content: 'del {"path":"a"}\ndel {"path":"b"}' }
const [ONE, TWO] = ['reply-u1:u1-1', 'reply-u1:u1-2'] as const
const yes = (id: string): Record<string, unknown> => answer(id, { approved: true })

interface Waiting { readonly server: TestServer, readonly agent: Approving, readonly tool: NotedTool }

/** A thread with two open questions. */
async function waiting (t: Test, options: AppOptions = {}): Promise<Waiting> {
  const tool = noted('del')
  const agent = approving([tool])
  const server = await serveApp(t, { agent, ...options })
  await eventsOf(await server.run({ messages: [USER] }))
  return { server, agent, tool }
}

/** All that the server knows of the thread. */
async function stateOf ({ server, agent, tool }: Waiting): Promise<unknown> {
  const { runs } = await server.store.index.list({}, { protocol: 'ag-ui', limit: 100 })
  const interrupts = await Promise.all(runs.map(({ key }) => server.store.interrupts.list(key)))
  return structuredClone({ runs, interrupts, asked: agent.inputs.length, ran: tool.ran })
}

/** Sends an answer that must be refused in its stream, and must change nothing. */
async function refused (t: Test, thread: Waiting, input: Readonly<Record<string, unknown>>, message: string, code = 'AGUI_INTERRUPT_CONTRACT_ERROR'): Promise<void> {
  const before = await stateOf(thread)
  const client = await thread.server.run({ runId: 'wrong', ...input })
  t.equal(client.status, 200)
  const [started, error, ...rest] = await eventsOf(client, { ids: false })
  t.match(started, { type: 'RUN_STARTED', threadId: 'thread', runId: 'wrong' })
  t.match(error, { type: 'RUN_ERROR', code, message, timestamp: Number })
  t.equal(error?.type === 'RUN_ERROR' && error.message, message)
  t.strictSame(rest, [])
  t.strictSame(await stateOf(thread), before)
}

/** The right answer still works, and does everything once. */
async function goesOn (t: Test, { server, tool }: Waiting): Promise<WireEvent[]> {
  const events = await eventsOf(await server.run({ runId: 'right', messages: [USER], resume: [yes(ONE), yes(TWO)] }))
  t.match(events.at(-1), { type: 'RUN_FINISHED', runId: 'right', outcome: { type: 'success' } })
  t.strictSame(tool.ran, [{ path: 'a' }, { path: 'b' }])
  return events
}

t.test('row 1: an answer to nothing is refused', async (t) => {
  const tool = noted('del')
  const agent = approving([tool])
  const thread = { server: await serveApp(t, { agent }), agent, tool }
  await refused(t, thread, { resume: [yes('x'), answer('y', undefined, 'cancelled')] }, 'The thread has no open interrupt that resume could answer: x, y.')
  // Also on a thread that has been answered.
  await eventsOf(await thread.server.run({ messages: [USER] }))
  await goesOn(t, thread)
  await refused(t, thread, { resume: [answer(ONE, { approved: false }), yes(TWO)] }, `The thread has no open interrupt that resume could answer: ${ONE}, ${TWO}.`)
  await refused(t, thread, { resume: [answer(ONE, undefined, 'cancelled'), answer(TWO, undefined, 'cancelled')] }, `The thread has no open interrupt that resume could answer: ${ONE}, ${TWO}.`)
})

t.test('row 2: a request that leaves the questions open is refused', async (t) => {
  const thread = await waiting(t)
  const message = `The thread has unresolved interrupts, and this run answers none of them: ${ONE}, ${TWO}.`
  await refused(t, thread, {}, message)
  await refused(t, thread, { messages: [] }, message)
  await refused(t, thread, { messages: [USER, { id: 'u2', role: 'user', content: 'Never mind' }] }, message)
  // A message is no answer to an approval.
  await refused(t, thread, { messages: [{ id: 't1', role: 'tool', toolCallId: 'u1-1', content: '{"approved":true}' }, { id: 't2', role: 'tool', toolCallId: 'u1-2', content: 'ok' }] }, message)
  await goesOn(t, thread)
})

t.test('row 3: an answer is resolved or cancelled, anything else is no request', async (t) => {
  const thread = await waiting(t)
  const before = await stateOf(thread)
  for (const status of ['approved', 'RESOLVED', '', 1, undefined]) {
    const response = await thread.server.app.inject({ method: 'POST', url: '/agui/run', payload: request({ runId: 'wrong', resume: [{ ...yes(ONE), status }, yes(TWO)] }) })
    t.equal(response.statusCode, 400)
    t.match(response.json(), { error: { code: 'INVALID_INPUT_ERROR', issues: [{ path: 'resume[0].status' }] } }, String(status))
  }
  t.strictSame(await stateOf(thread), before)
  await goesOn(t, thread)
})

t.test('row 4: two answers to one question are refused, even where they agree', async (t) => {
  const thread = await waiting(t)
  await refused(t, thread, { resume: [yes(ONE), yes(TWO), yes(ONE)] }, `resume answers an interrupt more than once: ${ONE}.`)
  await refused(t, thread, { resume: [yes(ONE), answer(ONE, undefined, 'cancelled')] }, `resume answers an interrupt more than once: ${ONE}.`)
  await goesOn(t, thread)
})

t.test('row 5: exactly the open questions are answered; what is missing and what is unknown is named', async (t) => {
  const thread = await waiting(t)
  const message = (missing: string, unknown: string): string => `resume must answer exactly the thread's open interrupts. Missing: ${missing}. Unknown: ${unknown}.`
  await refused(t, thread, { resume: [yes(ONE)] }, message(TWO, 'none'))
  await refused(t, thread, { resume: [yes(ONE), yes(TWO), yes('x')] }, message('none', 'x'))
  await refused(t, thread, { resume: [yes('x'), yes('y')] }, message(`${ONE}, ${TWO}`, 'x, y'))
  await refused(t, thread, { resume: [answer('u1-1', { approved: true }), yes(TWO)] }, message(ONE, 'u1-1'))
  await goesOn(t, thread)
})

t.test('row 5: lenientUnknown passes over what is not open', async (t) => {
  const thread = await waiting(t, { lenientUnknown: true })
  await refused(t, thread, { resume: [yes(ONE), yes('x')] }, `resume must answer exactly the thread's open interrupts. Missing: ${TWO}. Unknown: none.`)
  await refused(t, thread, { resume: [yes('x')] }, `The thread has unresolved interrupts, and this run answers none of them: ${ONE}, ${TWO}.`)
  const events = await eventsOf(await thread.server.run({ runId: 'right', messages: [USER], resume: [yes('x'), yes(ONE), yes(TWO), yes('y')] }))
  t.match(events.at(-1), { outcome: { type: 'success' } })
  t.strictSame(thread.tool.ran, [{ path: 'a' }, { path: 'b' }])
  t.match((await eventsOf(await thread.server.run({ runId: 'next', resume: [yes('x')] }))).at(-1), { outcome: { type: 'success' } }, 'also where nothing is open')
  t.match(thread.server.logs.filter(({ level }) => level === 40), [
    { msg: 'answers to interrupts that are not open are passed over', named: 4, open: 2 }, { named: 1, open: 0 }
  ])
})

t.test('row 6: what has expired can only be cancelled, and waits until it is', async (t) => {
  let now = Date.now()
  const thread = await waiting(t, { store: memoryStore({ now: () => now }), interruptTtlMs: 60_000 })
  const [terminal] = (await eventsOf(await thread.server.run({ messages: [USER] }))).slice(-1)
  t.match(terminal, { outcome: { interrupts: [{ expiresAt: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ }, { expiresAt: String }] } })
  now += 120_000
  await refused(t, thread, { resume: [yes(ONE), yes(TWO)] }, `The interrupt has expired and can only be cancelled: ${ONE}, ${TWO}.`)
  await refused(t, thread, { resume: [answer(ONE, undefined, 'cancelled'), answer(TWO, { approved: false })] }, `The interrupt has expired and can only be cancelled: ${TWO}.`)
  await refused(t, thread, {}, `The thread has unresolved interrupts, and this run answers none of them: ${ONE}, ${TWO}.`)
  const events = await eventsOf(await thread.server.run({ runId: 'right', messages: [USER], resume: [ONE, TWO].map((id) => answer(id, undefined, 'cancelled')) }))
  t.match(events.filter(({ type }) => type === 'TOOL_CALL_RESULT'), [{ metadata: { 'agentscope.toolState': 'DENIED' } }, { metadata: { 'agentscope.toolState': 'DENIED' } }])
  t.strictSame(thread.tool.ran, [])
})

t.test('row 7: a payload fits the question\'s own schema, where it is no approval', async (t) => {
  const responseSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
  const tool = noted('ask', { needsApproval: false })
  const { execute, ...external } = tool
  const agent = approving([external], { metadata: { responseSchema } })
  const thread = { server: await serveApp(t, { agent }), agent, tool }
  await eventsOf(await thread.server.run({ messages: [{ ...USER, content: 'ask {}' }] }))
  const problem = (path: string): RegExp => new RegExp(`^The payload for ${ONE} does not fit the interrupt's responseSchema: ${path}: `)
  for (const [payload, path] of [[{ name: 1 }, '/name'], [{}, '/'], ['x', '/'], [undefined, '/']] as const) {
    const before = await stateOf(thread)
    const [, error] = await eventsOf(await thread.server.run({ runId: 'wrong', resume: [answer(ONE, payload)] }), { ids: false })
    t.match(error, { type: 'RUN_ERROR', code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: problem(path) }, JSON.stringify(payload))
    t.strictSame(await stateOf(thread), before)
  }
  const events = await eventsOf(await thread.server.run({ runId: 'right', messages: [USER], resume: [answer(ONE, { name: 'Ada' })] }))
  t.match(events.find(({ type }) => type === 'TOOL_CALL_RESULT'), { toolCallId: 'u1-1', content: '{"name":"Ada"}' })
})

t.test('row 7: what is cancelled needs no payload', async (t) => {
  const { execute, ...external } = noted('ask', { needsApproval: false })
  const agent = approving([external], { metadata: { responseSchema: { type: 'string' } } })
  const server = await serveApp(t, { agent })
  await eventsOf(await server.run({ messages: [{ ...USER, content: 'ask {}' }] }))
  t.match((await eventsOf(await server.run({ runId: 'right', messages: [USER], resume: [answer(ONE, 7, 'cancelled')] }))).at(-1), { outcome: { type: 'success' } })
})

t.test('row 7: with strictResponseSchema an approval fits its schema too', async (t) => {
  const thread = await waiting(t, { strictResponseSchema: true })
  for (const [payload, path] of [[{}, '/'], [{ approved: 'yes' }, '/approved'], [{ approved: true, editedArgs: null }, '/editedArgs'], [undefined, '/']] as const) {
    const [, error] = await eventsOf(await thread.server.run({ runId: 'wrong', resume: [yes(ONE), answer(TWO, payload)] }), { ids: false })
    t.match(error, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: new RegExp(`^The payload for ${TWO} does not fit the interrupt's responseSchema: ${path}: `) }, JSON.stringify(payload))
  }
  await goesOn(t, thread)
})

t.test('row 8: the same answers again are shown the run that they have started', async (t) => {
  const thread = await waiting(t)
  const { server, agent } = thread
  const first = await goesOn(t, thread)
  const same = { runId: 'right', messages: [USER], resume: [yes(ONE), yes(TWO)] }
  t.strictSame(await eventsOf(await server.run(same)), first, 'the same request')
  t.strictSame(await eventsOf(await server.run({ ...same, runId: 'pressed-twice' })), first, 'another run id')
  t.strictSame(await eventsOf(await server.run({ ...same, runId: 'again', resume: [yes(TWO), yes(ONE)] })), first, 'another order')
  const closed = `The thread has no open interrupt that resume could answer: ${ONE}, ${TWO}.`
  await refused(t, thread, { ...same, runId: 'wrong', resume: [yes(ONE), answer(TWO, { approved: false })] }, closed)
  await refused(t, thread, { ...same, runId: 'wrong', messages: [USER, { id: 'u2', role: 'user', content: 'And now' }] }, closed)
  t.equal(agent.inputs.length, 2)
  // Once the thread has gone on, an old answer is none.
  await eventsOf(await server.run({ runId: 'next', messages: [] }))
  await refused(t, thread, { ...same, runId: 'wrong' }, closed)
  t.strictSame(await eventsOf(await server.run(same)), first, 'the same request is the same run for good')
})

t.test('an Idempotency-Key is looked at first: used for another request it is a conflict, for the same one its run', async (t) => {
  const thread = await waiting(t)
  const { server } = thread
  const headers = { 'idempotency-key': 'k1' }
  const right = { runId: 'right', messages: [USER], resume: [yes(ONE), yes(TWO)] }
  const first = await eventsOf(await server.run(right, { headers }))
  t.match(first.at(-1), { outcome: { type: 'success' } })
  t.strictSame(await eventsOf(await server.run(right, { headers })), first)
  const other = await server.app.inject({ method: 'POST', url: '/agui/run', headers, payload: request({ ...right, resume: [yes('x')] }) })
  t.equal(other.statusCode, 409)
  t.match(other.json(), { error: { code: 'IDEMPOTENCY_CONFLICT' } })
  t.strictSame(thread.tool.ran, [{ path: 'a' }, { path: 'b' }])
})

t.test('row 9: an empty resume is none', async (t) => {
  const thread = await waiting(t)
  await refused(t, thread, { resume: [] }, `The thread has unresolved interrupts, and this run answers none of them: ${ONE}, ${TWO}.`)
  await goesOn(t, thread)
  t.match((await eventsOf(await thread.server.run({ runId: 'next', resume: [] }))).at(-1), { outcome: { type: 'success' } })
})

t.test('another owner\'s answer is one to nothing, and leaves the question open', async (t) => {
  const tool = noted('del')
  const agent = approving([tool])
  const server = await serveApp(t, { agent, getPrincipal: (request) => ({ id: String(request.headers['x-user']) }) })
  const as = (user: string) => ({ headers: { 'x-user': user } })
  await eventsOf(await server.run({ messages: [USER] }, as('ann')))
  const foreign = await eventsOf(await server.run({ runId: 'two', resume: [yes(ONE), yes(TWO)] }, as('bob')), { ids: false })
  t.match(foreign[1], { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: `The thread has no open interrupt that resume could answer: ${ONE}, ${TWO}.` })
  t.match((await eventsOf(await server.run({ runId: 'three' }, as('bob')))).at(-1), { outcome: { type: 'success' } }, 'and waits for nothing of it')
  await eventsOf(await server.run({ runId: 'two', messages: [USER], resume: [yes(ONE), yes(TWO)] }, as('ann')))
  t.strictSame(tool.ran, [{ path: 'a' }, { path: 'b' }])
})

t.test('answered at the same moment, a call runs once: alike all see it, otherwise the first', async (t) => {
  const alike = await waiting(t)
  const same = { messages: [USER], resume: [yes(ONE), yes(TWO)] }
  const shown = await Promise.all(['right', 'right', 'right'].map(async (runId) => await eventsOf(await alike.server.run({ ...same, runId }))))
  t.strictSame(shown[1], shown[0])
  t.strictSame(shown[2], shown[0])
  t.strictSame(alike.tool.ran, [{ path: 'a' }, { path: 'b' }])

  const unlike = await waiting(t)
  const answers = [[yes(ONE), yes(TWO)], [answer(ONE, { approved: false }), answer(TWO, { approved: false })], [yes(ONE), answer(TWO, { approved: false })]]
  const told = await Promise.all(answers.map(async (resume, index) => {
    const frames = await (await unlike.server.run({ messages: [USER], runId: `r${index}`, resume })).rest()
    return frames.map(({ data }) => JSON.parse(data ?? '') as WireEvent).at(-1)
  }))
  t.equal(told.filter((event) => event?.type === 'RUN_FINISHED').length, 1)
  t.match(told.filter((event) => event?.type === 'RUN_ERROR'), [{ code: 'AGUI_INTERRUPT_CONTRACT_ERROR' }, { code: 'AGUI_INTERRUPT_CONTRACT_ERROR' }])
  t.equal(unlike.agent.inputs.length, 2)
})

t.test('a thread that is busy is told so after its contract', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const run = await agent.next()
  const errorOf = async (input: object): Promise<WireEvent | undefined> => (await eventsOf(await server.run({ runId: 'two', ...input }), { ids: false }))[1]
  t.match(await errorOf({ resume: [yes('x')] }), { message: 'The thread has no open interrupt that resume could answer: x.' })
  t.match(await errorOf({ resume: [] }), { code: 'AGUI_INTERRUPT_CONTRACT_ERROR', message: 'Thread "thread" is busy with run "run".' })
  run.end()
  await client.rest()
})

t.test('what has no id cannot be answered: the run that asks fails, and its thread waits for nothing', async (t) => {
  const asking = scripted([{ type: 'REQUIRE_INPUT', requests: [{ id: ' ', reason: 'input_required' }] }])
  const server = await serveApp(t, { agents: { asking, working: approving([]) }, defaultAgent: 'asking' })
  t.match((await eventsOf(await server.run())).at(-1), { type: 'RUN_ERROR', code: 'INVALID_INPUT_ERROR', message: 'A call that waits for its answer has no id.' })
  t.match((await eventsOf(await server.run({ runId: 'two' }, { path: '/agui/run/working' }))).at(-1), { outcome: { type: 'success' } })
})
