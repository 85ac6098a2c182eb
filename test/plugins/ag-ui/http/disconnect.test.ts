import t from 'tap'
import { type Agent, RunInterrupted } from '../../../../lib/agent/index.ts'
import { memoryStore, type Store } from '../../../../lib/stores/index.ts'
import { checkFrames, typesOf } from '../../../helpers/ag-ui-check.ts'
import { eventsOf, readUntil, serveApp, snapshotOf, type TestServer } from '../../../helpers/ag-ui-app.ts'
import { deferred } from '../../../helpers/sse-server.ts'
import { steered } from '../../../helpers/steered-agent.ts'

/** The record of a thread's last run, once it is over. */
async function endOf ({ host }: TestServer, thread = 'thread'): Promise<unknown> {
  const run = await host.engine.lastOf({}, 'ag-ui', thread)
  const { state, end } = await run?.ended ?? {}
  return { state, end }
}

const INTERRUPTED = { state: 'cancelled', end: { kind: 'interrupted', code: 'disconnect' } }

for (const way of ['destroy', 'reset'] as const) {
  t.test(`interrupts an idle agent as soon as its only client is gone (${way})`, async (t) => {
    const agent = steered()
    const server = await serveApp(t, { agent })
    const client = await server.run()
    const run = await agent.next()
    run.say('a')
    await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    await client[way]()
    await run.over
    t.ok(run.context.signal.reason instanceof RunInterrupted)
    t.match(run.context.signal.reason, { name: 'AbortError', source: 'user' })
    t.strictSame(await endOf(server), INTERRUPTED)
    const events = await snapshotOf(await server.rejoin({ threadId: 'thread' }))
    t.match(events.at(-1), { type: 'RUN_ERROR', code: 'INTERRUPTED_ERROR' })
    t.equal((await server.host.engine.lastOf({}, 'ag-ui', 'thread'))?.record.clientId, 'run')
  })
}

t.test('abandons an agent that does not listen, after cancelGraceMs', async (t) => {
  const agent = steered({ deaf: true })
  const server = await serveApp(t, { agent, cancelGraceMs: 20 })
  const client = await server.run()
  const run = await agent.next()
  await readUntil(client, ({ type }) => type === 'RUN_STARTED')
  await client.destroy()
  t.strictSame(await endOf(server), INTERRUPTED)
  // What it says now reaches nobody.
  run.say('late')
  run.end()
  await run.over
  const events = await snapshotOf(await server.rejoin({ threadId: 'thread' }))
  t.notMatch(JSON.stringify(events), /late/)
})

t.test('an agent that waits for its stalled client stops when that one is reset', async (t) => {
  let yielded = 0
  const over = deferred<undefined>()
  const chunk = 'x'.repeat(1024 * 1024)
  const firehose: Agent = {
    name: 'firehose',
    async * stream () {
      try {
        for (;;) {
          yielded++
          yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: chunk }
        }
      } finally {
        over.resolve(undefined)
      }
    }
  }
  const short: Agent = { name: 'short', async * stream () { for (let i = 0; i < 100; i++) yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'y' } } }
  const server = await serveApp(t, { agents: { firehose, short } })
  const stalled = await server.run({}, { path: '/agui/run/firehose' })
  // Others are served meanwhile, and by the time they are the firehose has long run into its client.
  for (let i = 0; i < 5; i++) await eventsOf(await server.run({ threadId: `other-${i}` }, { path: '/agui/run/short' }))
  t.ok(yielded < 32, `${yielded} MiB were produced for a client that takes nothing`)
  await stalled.reset()
  await over.promise
  t.strictSame(await endOf(server), INTERRUPTED)
})

t.test('a client that takes nothing for writeTimeoutMs counts as gone', async (t) => {
  const over = deferred<undefined>()
  const firehose: Agent = {
    name: 'firehose',
    async * stream () {
      try {
        for (let i = 0; i < 200; i++) yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(256 * 1024) }
      } finally {
        over.resolve(undefined)
      }
    }
  }
  const interrupted = await serveApp(t, { agent: firehose, writeTimeoutMs: 1_000 })
  const stalled = await interrupted.run()
  await over.promise
  t.strictSame(await endOf(interrupted), INTERRUPTED)
  await stalled.destroy()
})

t.test('with continue a run goes on without its stalled client, and to its end', async (t) => {
  const firehose: Agent = {
    name: 'firehose',
    async * stream () { for (let i = 0; i < 100; i++) yield { type: 'TEXT_BLOCK_DELTA', replyId: 'r', delta: 'x'.repeat(256 * 1024) } }
  }
  const server = await serveApp(t, { agent: firehose, writeTimeoutMs: 1_000, onDisconnect: 'continue', replay: { maxBytes: 64 * 1024 * 1024 } })
  const stalled = await server.run()
  t.match(await endOf(server), { state: 'completed' })
  await stalled.destroy()
})

t.test('with continue a run outlives its client, and tells everything to who comes later', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, onDisconnect: 'continue' })
  const client = await server.run()
  const run = await agent.next()
  run.say('one ')
  const seen = await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  await client.destroy()
  run.say('two ')
  const back = await server.rejoin({ threadId: 'thread' }, seen.at(-1)?.id)
  run.say('three')
  run.end()
  const events = checkFrames([...seen, ...await back.rest()])
  t.equal(events.map((event) => event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '').join(''), 'one two three')
  t.equal(run.context.signal.aborted, false)
  t.match(await endOf(server), { state: 'completed' })
})

t.test('interruptOnDisconnect is another name for the policy', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, interruptOnDisconnect: false })
  const client = await server.run()
  const run = await agent.next()
  await readUntil(client, ({ type }) => type === 'RUN_STARTED')
  await client.destroy()
  run.end()
  t.match(await endOf(server), { state: 'completed' })
})

t.test('with graceMs a run waits for its client, and is interrupted when nobody comes', async (t) => {
  const agent = steered()
  const patient = await serveApp(t, { agent, onDisconnect: { graceMs: 60_000 } })
  const client = await patient.run()
  const run = await agent.next()
  run.say('one ')
  const seen = await readUntil(client, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  await client.destroy()
  run.say('two')
  const back = await patient.rejoin({ threadId: 'thread' }, seen.at(-1)?.id)
  run.end()
  t.strictSame(typesOf(checkFrames([...seen, ...await back.rest()])), [
    'RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED'
  ])

  const hasty = await serveApp(t, { agent, onDisconnect: { graceMs: 20 } })
  const gone = await hasty.run()
  const abandoned = await agent.next()
  await readUntil(gone, ({ type }) => type === 'RUN_STARTED')
  await gone.destroy()
  await abandoned.over
  t.strictSame(await endOf(hasty), INTERRUPTED)
})

t.test('a second reader keeps the run going until it has left as well', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const client = await server.run()
  const run = await agent.next()
  const seen = [await client.next()]
  const second = await server.rejoin({ threadId: 'thread' })
  t.equal((await second.next()).raw, seen[0]?.raw)
  await client.destroy()
  run.say('still here')
  await readUntil(second, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  t.equal(run.context.signal.aborted, false)
  await second.destroy()
  await run.over
  t.strictSame(await endOf(server), INTERRUPTED)
})

t.test('another thread of the same agent is not touched by a disconnect', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent })
  const one = await server.run({ threadId: 'one' })
  const first = await agent.next()
  const two = await server.run({ threadId: 'two' })
  const second = await agent.next()
  await readUntil(one, ({ type }) => type === 'RUN_STARTED')
  await one.destroy()
  await first.over
  second.say('fine')
  second.end()
  t.equal((await eventsOf(two)).at(-1)?.type, 'RUN_FINISHED')
})

t.test('a client that leaves while the server still asks who it is starts nothing', async (t) => {
  const agent = steered()
  const asked = deferred<undefined>()
  const answer = deferred<undefined>()
  const answered = deferred<undefined>()
  const server = await serveApp(t, {
    agent,
    getPrincipal: async () => {
      asked.resolve(undefined)
      await answer.promise
      return { id: 'somebody' }
    },
    runtimeContextResolver: () => { answered.resolve(undefined); return undefined }
  })
  const request = server.run().catch((error: NodeJS.ErrnoException) => error.code)
  await asked.promise
  server.app.server.closeAllConnections()
  t.equal(await request, 'ECONNRESET')
  answer.resolve(undefined)
  await answered.promise
  await server.app.close()
  t.strictSame(agent.runs, [])
  t.strictSame((await server.store.index.list({ id: 'somebody' }, { limit: 10 })).runs, [])
})

t.test('a client that leaves while its run is being recorded has it interrupted', async (t) => {
  const agent = steered()
  const { store, creating, go } = slowCreate()
  const server = await serveApp(t, { agent, store })
  const request = server.run().catch((error: NodeJS.ErrnoException) => error.code)
  await creating
  server.app.server.closeAllConnections()
  t.equal(await request, 'ECONNRESET')
  go()
  const run = await agent.next()
  await run.over
  t.strictSame(await endOf(server), INTERRUPTED)
})

t.test('a stream that has lived for streamTimeoutMs ends with a cursor, which counts as a disconnect', async (t) => {
  const agent = steered()
  const server = await serveApp(t, { agent, streamTimeoutMs: 1_000, onDisconnect: { graceMs: 60_000 } })
  const client = await server.run()
  const run = await agent.next()
  run.say('a')
  const frames = await client.rest()
  t.equal(client.complete, true)
  const last = frames.pop()
  t.strictSame([last?.data, last?.id, typeof last?.retry], [undefined, frames.at(-1)?.id, 'number'])
  const back = await server.rejoin({ threadId: 'thread' }, last?.id)
  run.end()
  t.equal(checkFrames([...frames, ...await back.rest()]).at(-1)?.type, 'RUN_FINISHED')
})

/** A store whose first run is recorded when the test says so. */
function slowCreate (): { readonly store: Store, readonly creating: Promise<undefined>, go (): void } {
  const creating = deferred<undefined>()
  const gate = deferred<undefined>()
  const store = memoryStore()
  const create: Store['runs']['create'] = async (...args) => {
    creating.resolve(undefined)
    await gate.promise
    return await store.runs.create(...args)
  }
  const runs = over(store.runs, { create })
  return { store: over(store, { runs }), creating: creating.promise, go: () => { gate.resolve(undefined) } }
}

/** An object with some members replaced; the rest are its own. */
function over<T extends object> (target: T, members: Partial<T>): T {
  return new Proxy(target, {
    get (_target, key) {
      if (Object.hasOwn(members, key)) return members[key as keyof T]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    }
  })
}
