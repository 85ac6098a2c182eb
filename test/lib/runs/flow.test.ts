import t, { type Test } from 'tap'
import { Burst } from '../../../lib/runs/burst.ts'
import { Deadlines } from '../../../lib/runs/deadline.ts'
import { FlowControl, type FlowControlOptions } from '../../../lib/runs/flow.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { agentOf, makeEngine, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

/** Runs agents that never wait, each event of which takes this long, and says who yielded, with a dot for each turn of the event loop. */
async function trace (t: Test, names: readonly string[], eventMs: number): Promise<string> {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const { engine } = makeEngine(t)
  const seen: string[] = []
  const turns = { isOver: false }
  const count = (): void => {
    seen.push('.')
    if (!turns.isOver) setImmediate(count)
  }
  setImmediate(count)
  const runs = await Promise.all(names.map(async (name) => runOf(await engine.start(specOf(agentOf(async function * () {
    for (let i = 0; i < 1_600; i++) {
      clock.pass(eventMs)
      seen.push(name)
      yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: 'x' }
    }
  }), { clientId: name, session: name, replay: { maxEvents: 5_000, maxBytes: 1_000_000, ttlMs: 1_000 } })))))
  for (const run of runs) t.equal((await run.ended).state, 'completed')
  turns.isOver = true
  return seen.join('')
}

/** Length of the longest of some pieces. */
function longest (pieces: readonly string[]): number {
  return Math.max(...pieces.map(({ length }) => length))
}

t.test('an agent that never waits gives way to the event loop after a few milliseconds, whatever it does in them', async (t) => {
  for (const eventMs of [0.05, 1, 20]) {
    await t.test(`${eventMs} ms an event`, async (t) => {
      const stretch = longest((await trace(t, ['a'], eventMs)).split('.'))
      t.ok(stretch <= Math.ceil(10 / eventMs) + 1, `${stretch} events without a turn`)
    })
  }
})

t.test('agents that never wait take turns with each other, in time and in events', async (t) => {
  for (const eventMs of [0, 0.05, 1]) {
    await t.test(`${eventMs} ms an event`, async (t) => {
      const events = (await trace(t, ['a', 'b', 'c'], eventMs)).replaceAll('.', '')
      // As long as all have something to say.
      const together = events.slice(0, Math.min(...['a', 'b', 'c'].map((name) => events.lastIndexOf(name))))
      const streaks = together.match(/(.)\1*/g) ?? []
      t.ok(longest(streaks) <= 256, `${longest(streaks)} events of one`)
      t.match(streaks.map(([name]) => name).join(''), /^(abc)+a?b?$/, 'one after the other')
    })
  }
})

t.test('an agent can be stopped although it never waits', async (t) => {
  const { engine } = makeEngine(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    for (;;) yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: 'x' }
  }))))
  await turn()
  await engine.stop(run)
  t.equal(run.record.state, 'cancelled')
})

t.test('events that come together are stored together', async (t) => {
  const { engine, plan } = makeEngine(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    for (let i = 0; i < 640; i++) yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: 'x' }
  }))))
  await run.ended
  t.ok(plan.count('log.append') < 20, `${plan.count('log.append')} appends`)
})

t.test('with the store away an agent runs ahead to the limit, then waits, then is ended', async (t) => {
  const { engine, plan } = makeEngine(t, { storeTimeoutMs: 30 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 1_000, maxBytes: 10_000_000, ttlMs: 1_000 } })))
  const execution = await agent.called()
  plan.failBefore('log.append', { times: Infinity })
  for (let i = 0; i < 50; i++) execution.text('x'.repeat(20_000)).catch(() => {})
  for (let i = 0; i < 20; i++) await turn()
  const { pulls } = execution
  t.ok(pulls > 10 && pulls < 20, `${pulls} events ahead`)
  for (let i = 0; i < 20; i++) await turn()
  t.equal(execution.pulls, pulls)
  t.match(await run.ended, { state: 'failed', end: { code: 'STORE_UNAVAILABLE' } })
  t.match(execution.context.signal.reason, { name: 'AbortError' })
})

t.test('an agent that waited for the store goes on when it is back', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { replay: { maxEvents: 1_000, maxBytes: 10_000_000, ttlMs: 1_000 } })))
  const execution = await agent.called()
  const hold = plan.hold('log.append')
  for (let i = 0; i < 30; i++) execution.text('x'.repeat(20_000)).catch(() => {})
  for (let i = 0; i < 20; i++) await turn()
  hold.release()
  execution.finish()
  const record = await run.ended
  t.equal(record.state, 'completed')
  t.equal((await store.log.read(record.key, 0, 1_000))?.events.length, run.topic.last)
})

t.test('a run that can not say that it runs tells its caller so', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  plan.failBefore('runs.update')
  execution.finish()
  await first.ended
  t.match(await second.ended, { state: 'failed', end: { code: 'STORE_UNAVAILABLE' } })
  t.equal(agent.executions.length, 1)
})

t.test('a queued run that was taken away begins nothing', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  await store.leases.release(second.record.key, 1)
  await store.leases.takeover(second.record.key, { node: 'other', op: 'x', ms: 60_000 })
  execution.finish()
  await first.ended
  t.equal((await second.ended).state, 'lost')
  t.equal(agent.executions.length, 1)
})

t.test('a run that is fenced in mid-stream falls silent', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await turn()
  await store.leases.release(run.record.key, 1)
  await store.leases.takeover(run.record.key, { node: 'other', op: 'x', ms: 60_000 })
  execution.text('x').catch(() => {})
  t.equal((await run.ended).state, 'lost')
  t.equal(execution.returns, 1)
})

t.test('what is due is done in order before anything else is asked', async (t) => {
  const done: string[] = []
  const flow = new FlowControl({
    burst: new Burst(), patienceMs: 1_000, writeTimeoutMs: 1_000, lease: { isCurrent: () => true }, log: { tick: () => performance.now(), topic: { ready: () => undefined }, storeReady: () => undefined }
  } as unknown as FlowControlOptions)
  flow.after(async () => { done.push('a') })
  flow.after(async () => { done.push('b') })
  await flow.blocked()
  t.same(done, ['a', 'b'])
  t.equal(flow.blocked(), undefined)
})

/** Flow control of an agent that yields briskly, which counts its looks at the clock, the lease, the caller and the store. */
function brisk (): { readonly flow: FlowControl, readonly log: { size: number, isFull: boolean }, readonly burst: { stretch: number, isBrisk: boolean }, readonly seen: Record<string, number> } {
  const seen = { clock: 0, lease: 0, caller: 0, store: 0, full: 0 }
  const burst = { stretch: 1, isBrisk: true, clock: () => ++seen.clock, isOver: () => false, nextTurn: async () => {} }
  const log = {
    size: 0, isFull: false, tick () {}, topic: { ready () { seen.caller++ } }, storeReady () { seen.store++ }
  }
  const flow = new FlowControl({
    burst, log, patienceMs: 1_000, writeTimeoutMs: 1_000, lease: { isCurrent: () => { seen.lease++; return true } }, onFull: () => { seen.full++ }
  } as unknown as FlowControlOptions)
  return { flow, log, burst, seen }
}

/** So many events, none of which waits. */
function pass (t: Test, flow: FlowControl, events: number): void {
  for (let n = 0; n < events; n++) {
    t.equal(flow.guard(), undefined)
    t.equal(flow.blocked(), undefined)
  }
}

t.test('one look at everything serves eight more events that come briskly', async (t) => {
  const { flow, seen } = brisk()
  pass(t, flow, 1 + 8)
  t.strictSame(seen, { clock: 2, lease: 1, caller: 1, store: 1, full: 0 })
  pass(t, flow, 1)
  t.strictSame(seen, { clock: 4, lease: 2, caller: 2, store: 2, full: 0 })
})

for (const [what, change] of [
  ['the event loop had its turn', ({ burst }) => { burst.stretch++ }],
  ['4 KB have come', ({ log }) => { log.size += 4 * 1024 }]
] as readonly (readonly [string, (flow: ReturnType<typeof brisk>) => void])[]) {
  t.test(`everything is looked at again when ${what}`, async (t) => {
    const made = brisk()
    pass(t, made.flow, 3)
    change(made)
    pass(t, made.flow, 1)
    t.strictSame(made.seen, { clock: 4, lease: 2, caller: 2, store: 2, full: 0 })
  })
}

t.test('everything is looked at for each event that does not come briskly', async (t) => {
  const { flow, burst, seen } = brisk()
  burst.isBrisk = false
  pass(t, flow, 5)
  t.strictSame(seen, { clock: 10, lease: 5, caller: 5, store: 5, full: 0 })
})

t.test('what is due is not put off by events that pass unseen, and a barrier that is full is seen after them', async (t) => {
  const { flow, log, seen } = brisk()
  const done: string[] = []
  pass(t, flow, 3)
  t.equal(flow.guard(), undefined)
  flow.after(async () => { done.push('a') })
  await flow.blocked()
  t.same(done, ['a'])
  pass(t, flow, 1)
  log.isFull = true
  pass(t, flow, 8)
  t.equal(seen['full'], 0)
  pass(t, flow, 1)
  t.equal(seen['full'], 1)
  flow.end()
  flow.after(async () => { done.push('made up') })
  pass(t, flow, 20)
  t.same(done, ['a'])
})

t.test('two hundred and fifty-six events are the most before others have their turn', async (t) => {
  const { flow } = brisk()
  pass(t, flow, 255)
  t.equal(flow.guard(), undefined)
  t.type(flow.blocked(), Promise)
})

t.test('a time stamp is as of the last look at the clock, and the present where nothing is under way', async (t) => {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const burst = new Burst()
  const at = (ms: number): string => {
    Date.now = () => ms
    return burst.timestamp()
  }
  t.equal(at(1_000), '1970-01-01T00:00:01.000Z')
  t.equal(at(2_000), '1970-01-01T00:00:02.000Z')
  burst.isOver(burst.clock())
  t.equal(at(3_000), '1970-01-01T00:00:03.000Z')
  t.equal(at(4_000), '1970-01-01T00:00:03.000Z')
  burst.clock()
  t.equal(at(5_000), '1970-01-01T00:00:05.000Z')
  const { stretch } = burst
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(burst.stretch, stretch + 1)
  t.equal(at(6_000), '1970-01-01T00:00:06.000Z')
})

t.test('a stretch of work is over after five milliseconds, and the next begins with the event loop', async (t) => {
  const burst = new Burst()
  t.equal(burst.isOver(0), false)
  t.equal(burst.isOver(4), false)
  t.equal(burst.isOver(5), true)
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(burst.isOver(100), false, 'a new stretch begins')
  await turn()
})

t.test('those who give way are woken in their order, each when the one before has done what it can', async (t) => {
  const burst = new Burst()
  const done: string[] = []
  const work = async (name: string): Promise<void> => {
    await burst.nextTurn()
    for (let i = 0; i < 3; i++) {
      done.push(name)
      await undefined
    }
  }
  await Promise.all([work('a'), work('b'), work('c')])
  t.same(done, ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c'])
})

t.test('the event loop has its turn although somebody always gives way', async (t) => {
  const burst = new Burst()
  const seen = { isOver: false }
  let turns = 0
  setImmediate(() => { seen.isOver = true })
  while (!seen.isOver) {
    burst.isOver(performance.now())
    await burst.nextTurn()
    turns++
  }
  t.ok(turns > 0)
  await burst.nextTurn()
})

t.test('deadlines', async (t) => {
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => { clearInterval(alive) })
  const deadlines = new Deadlines(40)
  t.equal(await deadlines.run('kv.get', async () => 'x'), 'x')
  const cause = new Error('no')
  await t.rejects(deadlines.run('kv.get', async () => { throw cause }), { code: 'AGT_ERR_STORE_UNAVAILABLE', cause })
  await t.rejects(deadlines.run('kv.get', () => { throw cause }), { code: 'AGT_ERR_STORE_UNAVAILABLE', cause })
  const coded = Object.assign(new Error('full'), { code: 'AGT_ERR_STORE_FULL' })
  await t.rejects(deadlines.run('kv.get', async () => { throw coded }), coded)
  let late: (value: string) => void = () => {}
  const slow = deadlines.run('kv.get', () => new Promise<string>((resolve) => { late = resolve }))
  await t.rejects(slow, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  late('x')
  const two = [deadlines.run('kv.get', () => new Promise(() => {})), deadlines.run('kv.get', () => new Promise(() => {}))]
  for (const call of two) await t.rejects(call, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  const store = memoryStore()
  t.teardown(() => store.close())
  t.equal(await deadlines.bound(store).kv.get({ owner: {}, space: 's', key: 'k' }), undefined)
  deadlines.close()
})
