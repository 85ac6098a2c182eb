import t from 'tap'
import { MAX_HELD_EVENTS } from '../../../lib/runs/barrier.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { agentOf, approve, askFor, makeEngine, Reader, resultOf, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, linesOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('nothing after a pause is told before the iterator has returned and all of it is stored', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const own = new Reader(run, ledgerView('full'), { upTo: 'last', lossless: true })
  const execution = await agent.called()
  await execution.text('x')
  await execution.say(...askFor('c1'))
  await execution.text('more')
  await turn()
  t.same(kindsOf(run), ['started', 'text', 'call'])
  const hold = plan.hold('runs.commit')
  execution.finish()
  await hold.arrived
  await turn()
  t.same(kindsOf(run), ['started', 'text', 'call'], 'the iterator has returned, the store has not answered')
  t.same(await engine.openInterrupts({}, 'ledger', 's1'), [])
  hold.release()
  await run.settled()
  t.same(kindsOf(run), ['started', 'text', 'call', 'text', 'text-end', 'asks'])
  await own.until(({ text }) => text.includes('asks'))
  t.equal(run.topic.isEnded, false, 'the log stays open')
  const stored = await store.log.read(run.record.key, 0, 100)
  t.equal(stored?.last, run.topic.last)
  t.same((await store.runs.get(run.record.key))?.state, 'waiting')
})

t.test('a run can be resumed from inside the handler of its pause', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const resumed = new Promise<string>((resolve) => {
    run.topic.attach({
      view: ledgerView('status'),
      sink: {
        write: (chunk) => {
          if (Buffer.from(chunk).includes('"asks"')) engine.resume(run, { ...specOf(agent), decisions: [approve('c1')] }).then(({ kind }) => { resolve(kind) }, t.fail)
          return true
        },
        gap () {},
        end () {}
      }
    })
  })
  const execution = await agent.called()
  await execution.say(...askFor('c1'))
  execution.finish()
  t.equal(await resumed, 'resumed')
  const second = await agent.called()
  await second.say(...resultOf('c1'))
  second.finish()
  await run.ended
  t.same(kindsOf(run), ['started', 'call', 'asks', 'started', 'result', 'success'])
})

t.test('a lost acknowledgement of the barrier is no failure', async (t) => {
  const { engine, plan } = makeEngine(t)
  plan.failAfter('runs.commit', { times: 3 })
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  t.equal((await run.ended).state, 'completed')
  t.same(kindsOf(run), ['started', 'success'])
})

t.test('a barrier that fails for a while succeeds', async (t) => {
  const { engine, plan } = makeEngine(t)
  plan.failBefore('runs.commit', { times: 3 })
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  t.equal((await run.ended).state, 'completed')
})

t.test('a barrier that can not be stored promises nothing: the caller is told, others ask again', async (t) => {
  const { engine, store, plan } = makeEngine(t, { storeTimeoutMs: 20 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const own = new Reader(run, ledgerView('status'), { upTo: 'last', lossless: true })
  const other = new Reader(run, ledgerView('status'))
  const execution = await agent.called()
  await execution.text('x')
  await execution.say(...askFor('c1'))
  plan.failBefore('runs.commit', { times: Infinity })
  execution.finish()
  const record = await run.ended
  t.same([record.state, record.end], ['failed', { kind: 'failed', code: 'STORE_UNAVAILABLE', message: 'The run could not be stored.' }])
  await own.until(({ end }) => end !== undefined)
  await other.until(({ end }) => end !== undefined)
  t.same(own.lines.at(-1)?.endsWith('{"kind":"error","code":"STORE_UNAVAILABLE"}'), true)
  t.notOk(own.text.includes('asks'))
  t.equal(own.end, 'complete')
  t.equal(other.end, 'closed')
  t.notOk(other.text.includes('error'))
  t.equal((await store.runs.get(record.key))?.state, 'running', 'left to the reaper')
  plan.heal()
  const again = await engine.find({}, 'ledger', 'r1')
  t.not(again, run)
  t.equal(again?.record.state, 'running')
})

t.test('a record that was linked meanwhile is still ours', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const hold = plan.hold('runs.commit')
  const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
  await hold.arrived
  await store.runs.update(run.record.key, { version: run.record.version }, { links: { resumedBy: 'x' } })
  hold.release()
  const record = await run.ended
  t.match(record, { state: 'completed', links: { resumedBy: 'x' } })
})

t.test('a run that is somebody else\'s by then tells nothing', async (t) => {
  for (const how of ['taken', 'deleted'] as const) {
    const { engine, store, plan } = makeEngine(t, { leaseMs: 20_000 })
    const hold = plan.hold('runs.commit')
    const run = runOf(await engine.start(specOf(agentOf(async function * () {}))))
    const reader = new Reader(run, ledgerView('status'), { upTo: 'last' })
    await hold.arrived
    if (how === 'deleted') await store.runs.delete(run.record.key)
    else {
      await store.leases.release(run.record.key, 1)
      t.equal((await store.leases.takeover(run.record.key, { node: 'other', op: 'x', ms: 1_000 })).kind, 'taken')
    }
    hold.release()
    t.equal((await run.ended).state, 'lost')
    await reader.until(({ end }) => end !== undefined)
    t.same(reader.lines.length, 1)
    t.same(kindsOf(run).length <= 1, true)
  }
})

t.test('what is held is bounded, and the agent that goes on for too long is ended', async (t) => {
  const { engine } = makeEngine(t)
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    yield * askFor('c1')
    for (;;) yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: 'x' }
  }), { protocol: { ...ledger, name: 'bounded' } })))
  const record = await run.ended
  t.match(record, { state: 'failed', end: { code: 'BARRIER_OVERFLOW' } })
  t.ok(run.topic.last < MAX_HELD_EVENTS + 100)
  t.match(linesOf(run).at(-1), { kind: 'error', code: 'BARRIER_OVERFLOW' })
  t.same(await engine.openInterrupts({}, 'bounded', 's1'), [])
})

t.test('large events count by their bytes', async (t) => {
  const { engine } = makeEngine(t)
  let yielded = 0
  const run = runOf(await engine.start(specOf(agentOf(async function * () {
    yield * askFor('c1')
    for (;;) {
      yielded++
      yield { type: 'TEXT_BLOCK_DELTA' as const, blockId: 'b', delta: 'x'.repeat(100_000) }
    }
  }))))
  t.match(await run.ended, { end: { code: 'BARRIER_OVERFLOW' } })
  t.ok(yielded < 20)
})
