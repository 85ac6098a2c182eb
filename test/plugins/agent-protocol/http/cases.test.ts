// Cases that servers of this kind are known to get wrong.
import t from 'tap'
import { type Agent, type AgentEventInit, textAgent } from '../../../../lib/agent/index.ts'
import { agentOf, pause, turn } from '../../../helpers/run-engine.ts'
import { ScriptedAgent } from '../../../helpers/scripted-agent.ts'
import { connect, type SseClient } from '../../../helpers/sse-client.ts'
import { buildTaskApp, serveTasks, taskEvents, typesOf } from '../../../helpers/task-app.ts'

t.setTimeout(60_000)

t.test('nothing that a caller or an agent names can forge a frame (C01, C05)', async (t) => {
  const evil = 'x\r\nid: 99\nevent: forged\rdata: {}\n\n\0\u2028'
  const events: AgentEventInit[] = [
    { type: 'TEXT_BLOCK_DELTA', delta: evil, blockId: evil, replyId: evil },
    { type: 'CUSTOM', name: evil, value: { [evil]: evil } },
    { type: 'TOOL_CALL_START', toolCallId: evil, toolCallName: evil },
    { type: 'TOOL_CALL_END', toolCallId: evil },
    { type: 'REQUIRE_USER_CONFIRM', toolCalls: [{ type: 'tool_use', id: evil, name: evil, input: { [evil]: evil } }] }
  ]
  const app = await serveTasks(t, {
    agents: { asks: agentOf(async function * () { yield * events }, { name: evil, capabilities: { resume: true } }), throws: agentOf(async function * () { throw new Error(evil) }) },
    host: { defaultAgent: 'asks' },
    exposeErrors: true
  })
  const context = { detail: 'verbose', session_id: evil, parent_session_id: evil, user_id: evil }
  await app.submit('t1', { agent_id: evil, context })
  await app.submit('t2', { agent_id: 'throws', context: { detail: 'verbose' } })
  for (const id of ['t1', 't2']) {
    await app.settled(id)
    const stream = await app.events(id)
    if (id === 't1') await app.ask('POST', `/tasks/${id}/cancel`)
    const [opening, ...frames] = await stream.rest()
    t.equal(opening?.raw, ': ok\nretry: 2000\n\n')
    t.ok(frames.length > 0)
    for (const { raw } of frames) t.match(raw, /^id: \d+\nevent: [A-Z_]+\ndata: [^\r\n\0]*\n\n$/, JSON.stringify(raw))
    t.notOk(typesOf(taskEvents(frames)).includes('forged'))
  }
  t.match(await app.submit('a\ndata: forged'), { status: 400, body: { code: 'invalid_task_id' } })
})

t.test('an agent that fails in any way ends its task once, and says so once (C18, C52)', async (t) => {
  const cyclic = new Error('cyclic')
  cyclic.cause = cyclic
  const started: AgentEventInit = { type: 'TEXT_BLOCK_DELTA', delta: 'a' }
  const explode = (): never => { throw new Error('secret') }
  const throwing = (thrown: unknown): Agent => agentOf(async function * () { yield started; throw thrown })
  const agents: Record<string, Agent> = {
    throws: throwing(new Error('secret')),
    undefined: throwing(undefined),
    cyclic: throwing(cyclic),
    finally: agentOf(async function * () { try { yield started } finally { explode() } }),
    object: throwing({ secret: 1 }),
    getter: throwing({ get message () { return explode() } }),
    sync: agentOf(explode),
    nothing: agentOf(() => undefined as unknown as AsyncIterable<AgentEventInit>),
    endThenThrow: agentOf(async function * () { yield started; yield { type: 'AGENT_END' }; throw new Error('secret') })
  }
  const app = await serveTasks(t, { agents })
  for (const id of Object.keys(agents)) {
    await app.submit(id, { agent_id: id, context: { detail: 'full' } })
    const { body } = await app.settled(id)
    t.match(body, { status: 'error', code: 'internal_error' }, id)
    const events = taskEvents(await (await app.events(id)).rest())
    t.equal(events.filter(({ type }) => type === 'RUN_ERROR' || type === 'STATUS').length, 1, id)
    t.match(events.at(-1), { type: 'RUN_ERROR', status: 'error', code: 'internal_error' }, id)
    t.notOk(JSON.stringify([body, events]).includes('secret'), id)
  }
  t.ok(app.logs.filter(({ level }) => level >= 40).length >= Object.keys(agents).length, 'the log has each of them')
})

t.test('what is said and thrown after the end changes nothing (C18, C52)', async (t) => {
  let late = (): void => {}
  const agent: Agent = {
    name: 'late',
    stream: () => {
      let told = 0
      return {
        [Symbol.asyncIterator]: () => ({
          next: async (): Promise<IteratorResult<AgentEventInit>> => {
            told++
            if (told === 1) return { done: false, value: { type: 'TEXT_BLOCK_DELTA', delta: 'a' } }
            // Rejects when nobody listens any more.
            new Promise((_resolve, reject) => { late = () => { reject(new Error('late')) } }).catch(() => {})
            return { done: true, value: undefined }
          }
        })
      }
    }
  }
  const app = await serveTasks(t, { agent })
  await app.submit('t1')
  t.match((await app.settled('t1')).body, { status: 'success', result: 'a' })
  late()
  t.strictSame(typesOf(taskEvents(await (await app.events('t1')).rest())), ['RUN_STARTED', 'RUN_FINISHED', 'STATUS'])
})

t.test('a HEAD starts nothing and holds nothing (C17)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await serveTasks(t, { agent, maxStreams: 1, maxSubscribersPerTask: 1 })
  await app.submit('t1')
  for (let count = 0; count < 5; count++) {
    const head = await connect('HEAD', '/tasks/t1/events', { port: app.port })
    t.equal(head.status, 200)
    t.equal(await head.text(), '')
  }
  t.equal((await connect('HEAD', '/tasks', { port: app.port })).status, 200)
  t.equal(agent.executions.length, 1)
})

t.test('ids with colons are ids, and verbs stand behind a slash alone (C71)', async (t) => {
  const agent = new ScriptedAgent()
  const app = await buildTaskApp(t, { agent, subscribeGraceMs: 0 })
  for (const id of ['a:b', 'x:cancel', ':', 't1:subscribe']) {
    t.match(await app.submit(id), { status: 200, body: { task_id: id } })
    t.match(await app.ask('GET', `/tasks/${id}`), { status: 200, body: { task_id: id } })
    t.match(await app.ask('GET', `/tasks/${encodeURIComponent(id)}`), { status: 200, body: { task_id: id } })
    for (const path of [`/tasks/${id}`, `/tasks/${id}:bogus`, `/tasks/${id}:cancel`, `/tasks/${id}/subscribe`]) {
      t.match(await app.ask('POST', path, {}), { status: 404, body: { code: undefined } }, `${path} is no route, and is not called a task`)
    }
    t.match(await app.ask('POST', `/tasks/${encodeURIComponent(id)}/cancel`, 'null'), { status: 200, body: { task_id: id, status: 'cancelled' } })
  }
})

t.test('events that many parts of an agent say at once are all there, numbered without a hole (D13)', async (t) => {
  const PARTS = 20
  const EACH = 50
  const agent = agentOf(async function * () {
    const queue: AgentEventInit[] = []
    const say = async (part: number): Promise<void> => {
      for (let index = 0; index < EACH; index++) {
        queue.push({ type: 'TEXT_BLOCK_DELTA', blockId: `b${part}`, delta: `${part}.${index} ` })
        await turn()
      }
    }
    const over = new AbortController()
    Promise.all(Array.from({ length: PARTS }, (_, part) => say(part))).then(() => { over.abort() })
    while (!over.signal.aborted || queue.length > 0) {
      yield * queue.splice(0)
      await turn()
    }
  })
  const app = await serveTasks(t, { agent, replay: { maxEvents: 10_000 } })
  const ids = ['t1', 't2', 't3', 't4']
  await Promise.all(ids.map((id) => app.submit(id, { context: { detail: 'full' } })))
  const read = await Promise.all(ids.flatMap((id) => [1, 2, 3].map(async () => taskEvents(await (await app.events(id)).rest()))))
  for (const events of read) {
    t.strictSame(events.map(({ seq }) => seq), events.map((_, index) => index + 1))
    const texts = events.flatMap(({ type, text }) => type === 'TEXT_DELTA' ? [text ?? ''] : [])
    t.equal(new Set(texts).size, PARTS * EACH)
    t.equal(texts.length, PARTS * EACH)
    for (let part = 0; part < PARTS; part++) t.equal(texts.filter((text) => text.startsWith(`${part}.`)).join(''), Array.from({ length: EACH }, (_, index) => `${part}.${index} `).join(''))
  }
})

t.test('a server with fifty streams and waits of every kind closes: each ends with a cursor or the task\'s end (C112)', async (t) => {
  const big = 'x'.repeat(64 * 1024)
  const agents = {
    idle: new ScriptedAgent(),
    asks: new ScriptedAgent({ resume: true }),
    busy: agentOf(async function * (_, { signal }) {
      while (!signal.aborted) {
        yield { type: 'TEXT_BLOCK_DELTA', delta: big }
        await turn()
      }
    }),
    done: textAgent(() => 'done')
  }
  const app = await serveTasks(t, { agents, host: { shutdownMs: 2_000 } })
  for (const id of Object.keys(agents)) await app.submit(id, { agent_id: id, context: { detail: 'full' } })
  const run = await app.host.engine.find({}, 'agent-protocol', 'asks')
  if (run === undefined) throw new Error('no task')
  await pause(agents.asks, run)
  const open = async (id: string): Promise<SseClient[]> => await Promise.all(Array.from({ length: 10 }, () => app.events(id)))
  const idle = await open('idle')
  const parked = await open('asks')
  const busy = await open('busy')
  // The others take nothing from their sockets.
  const read = busy.slice(0, 5)
  const stalled = busy.slice(5)
  const requests = new Promise<void>((resolve) => {
    let count = 0
    app.app.server.on('request', () => { if (++count === 5) resolve() })
  })
  const early = Array.from({ length: 5 }, () => connect('GET', '/tasks/never/events', { port: app.port }))
  await requests
  const waits = ['idle', 'busy'].flatMap((id) => Array.from({ length: 5 }, () => app.settled(id)))
  const texts = read.map(async (stream) => await stream.rest())
  await turn()

  await app.app.close()
  for (const wait of waits) t.match((await wait).body, { status: 'error', code: 'interrupted' })
  for (const stream of idle) t.strictSame(typesOf(taskEvents(await stream.rest())), ['RUN_STARTED', 'RUN_FINISHED', 'RUN_ERROR'])
  for (const stream of parked) {
    const last = (await stream.rest()).at(-1)
    t.match(last, { comments: ['shutdown'], id: /^\d+$/ })
  }
  for (const text of texts) {
    const frames = await text
    t.ok(frames.at(-1)?.event === 'RUN_ERROR' || frames.at(-1)?.id !== undefined, 'an end, or where to go on')
  }
  for (const stream of stalled) {
    await stream.rest()
    t.match(await stream.closed, /ended|cut/)
  }
  for (const client of early) t.match(await (await client).json(), { code: 'task_not_found' })
  t.strictSame(app.logs.filter(({ level }) => level >= 50), [], 'nothing has gone wrong')
})
