import t, { type Test } from 'tap'
import { LeaseKeeper } from '../../../lib/runs/lease.ts'
import { type RunProtocol } from '../../../lib/runs/index.ts'
import { memoryStore, type RenewResult, type Store } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { type FakeTime, fakeTime } from '../../helpers/fake-time.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, makeEngine, pause, Reader, runOf, type TestEngine, turn } from '../../helpers/run-engine.ts'
import { kindsOf, linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const LEASE_MS = 3_000

/** The ledger, with something that happens after each event was told to the log and before it is delivered. */
function interruptedLedger (afterEvent: () => void): RunProtocol {
  return {
    ...ledger as RunProtocol,
    project: (run, execution) => {
      const projection = ledger.project(run, execution)
      return {
        open: (emit) => { projection.open(emit) },
        next: (event, emit) => {
          projection.next(event, emit)
          afterEvent()
        },
        close: (end, emit) => { projection.close(end, emit) }
      }
    }
  }
}

async function twoNodes (t: Test): Promise<{ readonly time: FakeTime, readonly store: Store, readonly a: TestEngine, readonly b: TestEngine }> {
  const time = fakeTime(t)
  const store = memoryStore({ now: time.now })
  t.teardown(() => store.close())
  const a = makeEngine(t, { store, node: 'a', leaseMs: LEASE_MS })
  const b = makeEngine(t, { store, node: 'b', leaseMs: LEASE_MS })
  for (const { engine } of [a, b]) for (const protocol of [ledger, envelope]) engine.register(protocol)
  return { time, store, a, b }
}

/** A node whose process can stand still after its next event. */
async function pausingNode (t: Test) {
  const time = fakeTime(t)
  const memory = memoryStore({ now: time.now })
  t.teardown(() => memory.close())
  let afterEvent: (() => void) | undefined
  const protocol = interruptedLedger(() => {
    const pause = afterEvent
    afterEvent = undefined
    pause?.()
  })
  const { engine, plan } = makeEngine(t, { store: memory, node: 'a', leaseMs: LEASE_MS })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { protocol })))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last', lossless: true })
  const execution = await agent.called()
  return {
    store: { plan, memory },
    time: {
      pauseAfterNext: (ms: number, meanwhile = () => {}) => {
        afterEvent = () => {
          time.jump(ms)
          meanwhile()
        }
      }
    },
    a: {
      run,
      own,
      async say (text: string) {
        execution.text(text).catch(() => {})
        for (let i = 0; i < 20; i++) await turn()
      }
    }
  }
}

const textsOf = (reader: Reader): string[] => reader.lines.map((line) => {
  const { kind, text } = JSON.parse(line.slice(line.indexOf('{'))) as { readonly kind: string, readonly text?: string }
  return text ?? kind
})

t.test('a lease that is renewed lasts', async (t) => {
  const { time, store, a, b } = await twoNodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  for (let i = 0; i < 10; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'running')
  await execution.text('x')
  execution.finish()
  t.equal((await run.ended).state, 'completed')
  t.equal(b.plan.count('leases.takeover'), 0)
})

t.test('what was said under a lease that runs out before it is delivered waits until the lease is certain, and is told then', async (t) => {
  const { time, store, a } = await pausingNode(t)
  const { own, say } = a
  await say('one')
  time.pauseAfterNext(LEASE_MS + 1)
  const renewals = store.plan.hold('leases.renew')
  await say('two')
  t.same(textsOf(own), ['started', 'one'], 'the process stood still: another node may have taken the run over')
  renewals.release()
  for (let i = 0; i < 20; i++) await turn()
  t.same(textsOf(own), ['started', 'one', 'two'], 'nobody had')
})

t.test('what was said under a lease that another node has taken before it is delivered is never told', async (t) => {
  const { time, store, a } = await pausingNode(t)
  const { own, say, run } = a
  await say('one')
  time.pauseAfterNext(LEASE_MS + 1, () => {
    store.memory.leases.takeover(run.record.key, { node: 'b', op: 'b', ms: LEASE_MS })
  })
  await say('two')
  for (let i = 0; i < 20; i++) await turn()
  t.same(textsOf(own), ['started', 'one'])
  t.equal((await run.ended).state, 'lost')
  t.same(textsOf(own), ['started', 'one'])
})

t.test('the run of a dead node is ended by another one within the lease, and its owner tells nothing when it wakes', async (t) => {
  const { time, a, b } = await twoNodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last', lossless: true })
  const execution = await agent.called()
  await execution.text('x')
  await turn()
  const seen = await b.engine.find({}, 'ledger', 'r1')
  const watcher = seen === undefined ? t.fail() as never : new Reader(seen, ledgerView('full'))
  const hold = a.plan.hold('leases.renew')
  const gates = a.plan.hold('gates.renew')
  await time.pass(1_000)
  await time.pass(1_000)
  await time.pass(1_000)
  await time.pass(1_000)
  t.match(await b.engine.find({}, 'ledger', 'r1'), { record: { state: 'lost', end: { kind: 'lost', code: 'NODE_LOST' } } })
  await watcher.until(({ end }) => end === 'complete')
  t.same(watcher.lines.at(-1)?.endsWith('{"kind":"error","code":"NODE_LOST"}'), true)
  t.equal((await b.engine.start(specOf(agent, { clientId: 'r2' }))).kind, 'started', 'its session is free')
  const before = own.lines.length
  execution.text('y').catch(() => {})
  for (let i = 0; i < 10; i++) await turn()
  t.equal(own.lines.length, before, 'nothing is told under a lease that ran out')
  hold.release()
  gates.release()
  t.equal((await run.ended).state, 'lost')
  t.equal(own.lines.length, before)
  t.match(execution.context.signal.reason, { name: 'AbortError', source: 'system' })
  await turn()
  t.match(await a.engine.find({}, 'ledger', 'r1'), { record: { state: 'lost' } }, 'it reads what the store says')
})

t.test('an owner that was away and still has its fence goes on where it was', async (t) => {
  const { time, a, b } = await twoNodes(t)
  await b.engine.close()
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  a.plan.failBefore('leases.renew', { times: 4 })
  const sweeps = a.plan.hold('leases.expired')
  await time.pass(1_000)
  await time.pass(1_000)
  await time.pass(1_000)
  execution.text('x').catch(() => {})
  await turn()
  t.same(kindsOf(run), ['started'])
  await time.pass(50)
  await time.pass(50)
  t.same(kindsOf(run), ['started', 'text'])
  sweeps.release()
  execution.finish()
  t.equal((await run.ended).state, 'completed')
})

t.test('an owner that can not renew for too long tells nobody anything', async (t) => {
  const { time, a, b } = await twoNodes(t)
  await b.engine.close()
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  a.plan.failBefore('leases.renew', { times: Infinity })
  a.plan.failBefore('leases.expired', { times: Infinity })
  for (let i = 0; i < 3; i++) await time.pass(1_000)
  execution.text('x').catch(() => {})
  for (let i = 0; i < 90; i++) await time.pass(50)
  t.equal((await run.ended).state, 'lost')
  t.same(kindsOf(run), [])
})

t.test('after an outage the reaper waits one full lease', async (t) => {
  const { time, store, b, a } = await twoNodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const hold = a.plan.hold('leases.renew')
  b.plan.failBefore('leases.expired', { times: 5 })
  const sweeps = a.plan.hold('leases.expired')
  for (let i = 0; i < 5; i++) await time.pass(1_000)
  await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'running')
  for (let i = 0; i < 2; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'running')
  await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'lost')
  hold.release()
  sweeps.release()
  await run.ended
})

t.test('waiting runs that can not be rebuilt end with their node, others wait on', async (t) => {
  const { time, a, b, store } = await twoNodes(t)
  const runs = []
  for (const resume of [false, true]) {
    for (const protocol of [ledger, envelope]) {
      const agent = new ScriptedAgent({ resume })
      const name = `${protocol.name} ${resume}`
      const run = runOf(await a.engine.start(specOf(agent, { protocol, session: name, clientId: name })))
      await pause(agent, run)
      runs.push(run)
    }
  }
  for (let i = 0; i < 5; i++) await time.pass(1_000)
  t.same(await Promise.all(runs.map(async ({ record }) => (await store.runs.get(record.key))?.state)), ['waiting', 'waiting', 'waiting', 'waiting'])
  const dead = a.plan.hold('nodes.beat')
  for (let i = 0; i < 5; i++) await time.pass(1_000)
  t.same(await Promise.all(runs.map(async ({ record }) => (await store.runs.get(record.key))?.state)), ['lost', 'lost', 'waiting', 'waiting'])
  t.same((await b.engine.openInterrupts({}, 'ledger', 'ledger false')), [])
  t.match(await b.engine.openInterrupts({}, 'ledger', 'ledger true'), [{ state: 'open' }])
  const late = await b.engine.find({}, 'ledger', 'ledger false')
  if (late === undefined) return t.fail()
  t.match(await b.engine.resume(late, { ...specOf(new ScriptedAgent()), decisions: [approve('c1')] }), { kind: 'not-waiting' })
  dead.release()
})

t.test('a node that stops waiting for a run is no longer tied to it', async (t) => {
  const { store, a } = await twoNodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  await a.engine.stop(run)
  t.equal(a.plan.count('nodes.unbind'), 1)
  t.same(await store.nodes.orphans({ protocols: ['ledger'], limit: 10 }), [])
})

t.test('what a dead owner had claimed is never done again', async (t) => {
  const { time, a, b, store } = await twoNodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const first = runOf(await a.engine.start(specOf(agent, { protocol: envelope, holdGateWhileWaiting: false })))
  await pause(agent, first)
  const second = runOf(await a.engine.start(specOf(agent, { protocol: envelope, clientId: 'r2', resumes: { interrupts: ['int:c1'], decisions: [approve('c1')] } })))
  await agent.called()
  const renewals = a.plan.hold('leases.renew')
  const sweeps = a.plan.hold('leases.expired')
  for (let i = 0; i < 4; i++) await time.pass(1_000)
  t.match(await b.engine.find({}, 'envelope', 'r2', 's1'), { record: { state: 'lost' } })
  t.match(await store.interrupts.list(first.record.key), [{ state: 'unknown' }])
  t.same(await b.engine.openInterrupts({}, 'envelope', 's1'), [])
  renewals.release()
  sweeps.release()
  await second.ended
})

t.test('a resume that died before it claimed anything leaves the run waiting', async (t) => {
  const { time, a, b, store } = await twoNodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  await store.leases.acquire(run.record.key, { node: 'c', op: 'x', ms: 1_000 })
  for (let i = 0; i < 4; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'waiting')
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  const other = new ScriptedAgent()
  t.equal((await b.engine.resume(found, { ...specOf(other), decisions: [approve('c1')] })).kind, 'resumed')
  const execution = await other.called()
  execution.finish()
  t.match(await found.settled(), { state: 'completed' }, 'whoever had looked it up waits for what it has become')
})

t.test('a resume that died after its claim ends the run', async (t) => {
  const { time, a, store } = await twoNodes(t)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  await pause(agent, run)
  await store.leases.acquire(run.record.key, { node: 'c', op: 'x', ms: 1_000 })
  await store.interrupts.claim(run.record.key, { run: run.record.key.id, fence: 2 }, [{ id: 'ask-c1', decision: {} }])
  for (let i = 0; i < 4; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'lost')
  t.match(await store.interrupts.list(run.record.key), [{ state: 'unknown' }])
})

t.test('two reapers end a run once', async (t) => {
  const { time, a, b, store } = await twoNodes(t)
  const c = makeEngine(t, { store, node: 'c', leaseMs: LEASE_MS })
  c.engine.register(ledger)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const renewals = a.plan.hold('leases.renew')
  const sweeps = a.plan.hold('leases.expired')
  for (let i = 0; i < 5; i++) await time.pass(1_000)
  const found = await b.engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.same(linesOf(found).filter((line) => (line as { kind: string }).kind === 'error').length, 1)
  renewals.release()
  sweeps.release()
  await run.ended
})

t.test('a reaper whose barrier is refused, or fails, leaves the run to the next sweep', async (t) => {
  const { time, a, b, store } = await twoNodes(t)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  const renewals = a.plan.hold('leases.renew')
  const sweeps = a.plan.hold('leases.expired')
  b.plan.failBefore('runs.commit')
  for (let i = 0; i < 4; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'running')
  for (let i = 0; i < 8; i++) await time.pass(1_000)
  t.equal((await store.runs.get(run.record.key))?.state, 'lost')
  renewals.release()
  sweeps.release()
  await run.ended
})

t.test('the keeper', async (t) => {
  const time = fakeTime(t)
  let answer: () => Promise<RenewResult> = async () => ({ kind: 'ok' })
  let beats = 0
  let renewals = 0
  const keeper = new LeaseKeeper({
    leaseMs: 300, leases: { renew: async () => { renewals++; return await answer() } } as unknown as Store['leases'], onBeat: () => { beats++ }
  })
  t.teardown(() => { keeper.close() })
  keeper.start()
  keeper.start()
  let losses = 0
  const lease = keeper.hold({ owner: {}, protocol: 'p', id: 'i' }, 1, time.now(), () => { losses++ })
  t.equal(keeper.leaseMs, 300)
  t.equal(lease.isCurrent(time.now() + 299), true)
  t.equal(lease.isCurrent(time.now() + 300), false)
  await time.pass(100)
  t.same([beats, renewals], [1, 1])
  t.equal(lease.isCurrent(time.now() + 299), true)
  answer = async () => { throw new Error('away') }
  await time.pass(100)
  t.equal(lease.isCurrent(time.now() + 200), false, 'counted from the last renewal')
  await t.rejects(lease.renew(), { message: 'away' })
  answer = async () => ({ kind: 'lost', fence: 2 })
  await time.pass(100)
  t.equal(losses, 1)
  t.equal(await lease.renew(), false)
  t.equal(losses, 1, 'told once')
  await time.pass(100)
  t.equal(renewals, 5)
  lease.drop()
  keeper.close()
  await time.pass(1_000)
  t.equal(beats, 4)
})
