import t from 'tap'
import { Gates } from '../../../lib/runs/gate.ts'
import { memoryStore } from '../../../lib/stores/index.ts'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { askFor, makeEngine, pause, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('a busy session refuses, naming the run that has it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  t.same(await engine.start(specOf(agent, { clientId: 'r2' })), { kind: 'busy', runningId: 'r1' })
  t.equal(await engine.find({}, 'ledger', 'r2'), undefined, 'nothing was started')
  t.equal((await engine.start(specOf(agent, { clientId: 'r2', session: 's2' }))).kind, 'started', 'other sessions run in parallel')
  t.equal((await engine.start(specOf(agent, { clientId: 'r3', owner: { id: 'u' } }))).kind, 'started', 'so do other owners')
  await engine.stop(run)
  t.equal((await engine.start(specOf(agent, { clientId: 'r4' }))).kind, 'started')
})

t.test('the session is free when the terminal is told', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  const results: string[] = []
  const told = new Promise<void>((resolve) => {
    run.topic.attach({
      view: { key: 'x', frame: ({ data }) => ({ head: '', data, tail: '\n' }) },
      sink: {
        write: (chunk) => {
          // From inside the handler of the terminal.
          if (Buffer.from(chunk).includes('success')) engine.start(specOf(agent, { clientId: 'r2' })).then(({ kind }) => { results.push(kind); resolve() }, t.fail)
          return true
        },
        gap () {},
        end () {}
      }
    })
  })
  execution.finish()
  await told
  t.same(results, ['started'])
})

t.test('queued runs go one after the other, in order', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const runs = []
  for (const clientId of ['r1', 'r2', 'r3']) runs.push(runOf(await engine.start(specOf(agent, { clientId, onBusySession: 'queue' }))))
  t.same(runs.map(({ record }) => record.state), ['running', 'pending', 'pending'])
  for (const run of runs) {
    const execution = await agent.called()
    t.equal(execution.context.runId, run.record.clientId)
    t.equal(run.record.state, 'running')
    t.equal(agent.executions.length, runs.indexOf(run) + 1)
    execution.finish()
    t.equal((await run.ended).state, 'completed')
  }
})

t.test('a queued run can be stopped, and the next one does not wait for it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const [first, second, third] = await Promise.all(['r1', 'r2', 'r3'].map(async (clientId) => runOf(await engine.start(specOf(agent, { clientId, onBusySession: 'queue' })))))
  if (first === undefined || second === undefined || third === undefined) return t.fail()
  const execution = await agent.called()
  await engine.stop(second)
  t.same(kindsOf(second), ['started', 'cancelled'])
  t.equal(third.record.state, 'pending', 'it did not overtake')
  execution.finish()
  await first.ended
  const next = await agent.called()
  t.equal(next.context.runId, 'r3')
  next.finish()
  await third.ended
})

t.test('a queued run that nobody reads any more is given up', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue', onDisconnect: 'interrupt' })))
  second.connect({ own: true }).close()
  t.equal((await second.ended).end?.code, 'disconnect')
  t.equal(first.record.state, 'running')
})

t.test('a superseding run ends those before it', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'queue' })))
  const execution = await agent.called()
  const third = runOf(await engine.start(specOf(agent, { clientId: 'r3', onBusySession: 'supersede' })))
  t.same((await first.ended).end, { kind: 'interrupted', code: 'superseded' })
  t.same((await second.ended).end, { kind: 'interrupted', code: 'superseded' })
  t.match(execution.context.signal.reason, { source: 'system' })
  const next = await agent.called()
  t.equal(next.context.runId, 'r3')
  next.finish()
  await third.ended
  t.equal((await engine.start(specOf(agent, { clientId: 'r4', onBusySession: 'supersede' }))).kind, 'started', 'a free session is simply taken')
})

t.test('a superseding run ends one that waits and has kept the session', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent)))
  await pause(agent, first)
  const second = runOf(await engine.start(specOf(agent, { clientId: 'r2', onBusySession: 'supersede' })))
  t.same((await first.ended).end, { kind: 'interrupted', code: 'superseded' })
  const next = await agent.called()
  next.finish()
  t.equal((await second.ended).state, 'completed')
})

t.test('a waiting run keeps its session or not, as its protocol wants', async (t) => {
  const { engine } = makeEngine(t)
  for (const holdGateWhileWaiting of [true, false]) {
    const session = String(holdGateWhileWaiting)
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent, { session, holdGateWhileWaiting })))
    const execution = await agent.called()
    await execution.say(...askFor('c1'))
    execution.finish()
    t.equal((await run.settled()).state, 'waiting')
    const result = await engine.start(specOf(agent, { session, clientId: 'r2' }))
    t.equal(result.kind, holdGateWhileWaiting ? 'busy' : 'started')
  }
})

t.test('the gate is left on every failure of a start', async (t) => {
  const operations = ['kv.setIfAbsent', 'interrupts.open', 'gates.enter', 'index.add', 'runs.create', 'interrupts.claim'] as const
  for (const operation of operations) {
    for (const moment of ['failBefore', 'failAfter'] as const) {
      const { engine, store, plan } = makeEngine(t)
      const agent = new ScriptedAgent()
      const paused = runOf(await engine.start(specOf(agent, { protocol: envelope, holdGateWhileWaiting: false })))
      await pause(agent, paused)
      plan[moment](operation)
      const spec = specOf(agent, {
        protocol: envelope, clientId: 'r2', idempotency: { key: 'k', fingerprint: 'f' }, resumes: { interrupts: ['int:c1'], decisions: [{ kind: 'confirm', toolCallId: 'c1', approved: true }] }
      })
      await t.rejects(engine.start(spec), { code: 'AGT_ERR_STORE_UNAVAILABLE' }, `${operation} ${moment}`)
      t.equal(await store.gates.holder({}, 's1'), undefined)
      t.equal(await store.index.find({}, 'envelope', 'r2'), undefined)
      if (operation !== 'interrupts.claim' || moment === 'failBefore') t.same((await engine.openInterrupts({}, 'envelope', 's1')).map(({ id }) => id), ['int:c1'])
    }
  }
})

t.test('a failed undo is logged and its parts run out', async (t) => {
  const warnings: string[] = []
  const logger = { debug () {}, info () {}, warn: (_fields: object, sentence: string) => { warnings.push(sentence) }, error () {}, child: () => logger }
  const { engine, plan } = makeEngine(t, { logger })
  plan.failBefore('runs.create')
  plan.failBefore('gates.leave', { times: Infinity })
  await t.rejects(engine.start(specOf(new ScriptedAgent())), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  t.same(warnings, ['a failed start could not be undone; its parts run out by themselves'])
})

t.test('a waiter\'s ticket', async (t) => {
  let now = 1_000
  const store = memoryStore({ now: () => now })
  t.teardown(() => store.close())
  const gates = new Gates({ gates: store.gates, ticketMs: 100 })
  const ticket = async (id: string) => {
    return await gates.enter({}, 's', id, {})
  }
  const controller = new AbortController()
  const head = await ticket('a')
  t.equal(head.isHead, true)
  t.equal(await head.wait(controller.signal), true)

  await t.test('waits until the head leaves', async (t) => {
    const waiter = await ticket('b')
    const turnOf = waiter.wait(controller.signal)
    await gates.leave({}, 's', 'a')
    t.equal(await turnOf, true)
    await gates.leave({}, 's', 'b')
  })

  await t.test('is kept alive by the beat, and dead ones before it are passed over', async (t) => {
    await store.gates.enter({}, 's', { id: 'dead', ms: 50 })
    const waiter = await ticket('c')
    const turnOf = waiter.wait(controller.signal)
    await turn()
    t.equal(waiter.isHead, false)
    now += 60
    gates.beat()
    t.equal(await turnOf, true)
    now += 60
    gates.beat()
    await turn()
    now += 60
    t.equal((await store.gates.holder({}, 's'))?.id, 'c', 'a head is renewed too')
    await gates.leave({}, 's', 'c')
  })

  await t.test('is abortable', async (t) => {
    await store.gates.enter({}, 's', { id: 'other', ms: undefined })
    const waiter = await ticket('d')
    const own = new AbortController()
    const turnOf = waiter.wait(own.signal)
    own.abort()
    t.equal(await turnOf, false)
    t.equal(await waiter.wait(own.signal), false)
    await gates.leave({}, 's', 'd')
    await store.gates.leave({}, 's', 'other')
  })

  await t.test('that ran out is an error for who waits', async (t) => {
    await store.gates.enter({}, 's', { id: 'other', ms: undefined })
    const waiter = await ticket('e')
    const turnOf = waiter.wait(controller.signal)
    await turn()
    await store.gates.leave({}, 's', 'e')
    gates.beat()
    await t.rejects(turnOf, { message: 'The ticket ran out before its turn came.' })
    await gates.leave({}, 's', 'e')
    await store.gates.leave({}, 's', 'other')
  })

  await t.test('is parked without a lease', async (t) => {
    const parked = await ticket('f')
    await parked.park()
    now += 1_000_000
    gates.beat()
    t.match(await store.gates.holder({}, 's'), { id: 'f', parked: true })
    t.match(await gates.enterIfFree({}, 's', 'g', {}), { holder: { id: 'f' } })
    await gates.leave({}, 's', 'f')
    await gates.leave({}, 's', 'f')
    t.equal(await store.gates.holder({}, 's'), undefined)
  })

  await t.test('a store that fails for a moment costs nothing but time', async (t) => {
    await store.gates.enter({}, 's', { id: 'other', ms: undefined })
    let fails = 1
    const flaky = new Gates({ ticketMs: 100, gates: { ...store.gates, enter: (...args) => store.gates.enter(...args), leave: (...args) => store.gates.leave(...args), holder: (...args) => store.gates.holder(...args), renew: async (...args) => { if (fails-- > 0) throw new Error('away'); return await store.gates.renew(...args) } } })
    const waiter = await flaky.enter({}, 's', 'h', {})
    const turnOf = waiter.wait(controller.signal)
    await turn()
    await store.gates.leave({}, 's', 'other')
    flaky.wake({}, 's')
    t.equal(await turnOf, true)
  })
})
