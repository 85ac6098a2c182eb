import t from 'tap'
import { type View } from '../../../lib/bus/index.ts'
import { type Run } from '../../../lib/runs/index.ts'
import { NODE_LOST } from '../../../lib/runs/errors.ts'
import { logEvent, type RunRecord, type Store } from '../../../lib/stores/index.ts'
import { ledger, ledgerView } from '../../helpers/ledger-protocol.ts'
import { approve, makeEngine, makePair, pause, Reader, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { VirtualClock } from '../../helpers/virtual-clock.ts'

/** What a client reads of a run: ids and data. */
const clientView: View = {
  key: 'ids',
  frame: ({ seq, data }, { epoch }) => ({ head: `${epoch}.${seq} `, data, tail: '\n' })
}

function idsOf (run: Run): string[] {
  return new Reader(run, clientView, { from: 'start' }).lines
}

/** Ends a run as another node's reaper does. */
async function takeOver (store: Store, { key, fence }: RunRecord): Promise<void> {
  await store.leases.release(key, fence)
  const taken = await store.leases.takeover(key, { node: 'x', op: `x${fence}`, ms: 1_000 })
  if (taken.kind !== 'taken') throw new Error(taken.kind)
  const { record, last } = taken
  const events = ledger.lost(record, NODE_LOST).map(({ data, event, level }, index) => logEvent(last + 1 + index, data, event, level))
  await store.runs.commit(key, { version: record.version, fence: record.fence, op: 'end' }, {
    patch: { state: 'lost', end: { kind: 'lost' }, endedAt: Date.now() }, firstSeq: last + 1, events
  })
}

t.test('a caller who saw what was never stored comes back to a gap, not to the end that was stored in its place', async (t) => {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const { engine, plan } = makeEngine(t, { storeTimeoutMs: 500 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const execution = await agent.called()
  await clock.advance(0)
  const caller = new Reader(run, ledgerView('verbose'), { upTo: 'last' })
  plan.failBefore('*', { times: Infinity })
  execution.text('x').catch(() => {})
  await clock.advance(0)
  const { epoch, last, stored } = run.topic
  t.ok(last > stored, 'seen ahead of the store')
  t.ok(caller.text.includes('"x"'))
  await clock.until(run.ended, 20_000, 'the end')
  plan.heal()
  await clock.advance(60_000)
  const found = await engine.find({}, 'ledger', 'r1')
  if (found === undefined) return t.fail()
  t.match(found.record, { state: 'lost' })
  for (let seq = stored + 1; seq <= last; seq++) {
    const back = new Reader(found, ledgerView('verbose'), { after: { epoch, seq } })
    t.equal(back.gaps.length, 1, `the cursor ${seq} of ${stored} stored`)
    t.ok(back.text.includes('NODE_LOST'), 'the end is told')
  }
})

t.test('events keep their ids byte for byte over pauses, and on every node that reads them after a takeover', async (t) => {
  const { store, a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent({ resume: true })
  const run = runOf(await a.engine.start(specOf(agent)))
  const { epoch } = run.record
  await pause(agent, run)
  const first = idsOf(run)
  t.ok(first.every((line) => line.startsWith(`${epoch}.`)))
  const there = await b.engine.find({}, 'ledger', 'r1')
  if (there === undefined) return t.fail()
  t.same(idsOf(there), first)
  t.equal(there.snapshot()?.epoch, epoch)

  await pause(agent, runOf(await b.engine.resume(there, { ...specOf(agent), decisions: [approve('c1')] })), 'c2')
  const resumed = await b.engine.find({}, 'ledger', 'r1')
  if (resumed === undefined) return t.fail()
  const both = idsOf(resumed)
  t.same(both.slice(0, first.length), first)
  t.ok(both.length > first.length && both.slice(first.length).every((line) => line.startsWith(`${epoch}-2.`)))
  const { epoch: present, seq = 0 } = resumed.snapshot() ?? {}
  t.equal(`${present}.${seq}`, `${epoch}-2.${both.length}`)

  const back = runOf(await a.engine.resume(run, { ...specOf(agent), decisions: [approve('c2')] }))
  const third = await agent.called()
  await third.text('x')
  await turn()
  const three = idsOf(back)
  t.same(three.slice(0, both.length), both)
  t.ok(three.slice(both.length).every((line) => line.startsWith(`${epoch}-3.`)))
  await takeOver(store, back.record)
  const ended = await b.engine.find({}, 'ledger', 'r1')
  if (ended === undefined) return t.fail()
  const all = idsOf(ended)
  t.same(all.slice(0, three.length), three)
  t.same(all.slice(three.length), [`${epoch}-4.${three.length + 1} {"kind":"error","code":"NODE_LOST"}`])
  // A node that starts with an empty memory reads the same.
  const other = makeEngine(t, { store })
  other.engine.register(ledger)
  const fresh = await other.engine.find({}, 'ledger', 'r1')
  t.same(fresh === undefined ? [] : idsOf(fresh), all)
  for (const fence of [1, 2, 3, 4]) {
    const own = fence === 1 ? epoch : `${epoch}-${fence}`
    t.equal(await other.engine.findByEpoch({}, 'ledger', 's1', own), fresh, own)
    t.equal(await other.engine.findByEpoch({}, 'ledger', 's1', `${own}-unstored`), fresh, own)
  }
  for (const strange of [`${epoch}-1`, `${epoch}-5`, `${epoch}-`, `${epoch}-x`, `${epoch}-02`, `${epoch}-5-unstored`, `${epoch}2`, 'other', '']) {
    t.equal(await other.engine.findByEpoch({}, 'ledger', 's1', strange), undefined, strange)
  }
})

t.test('an owner that has stored nothing leaves no cursor that fits, and its run is found all the same', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const hold = plan.hold('log.append')
  const run = runOf(await engine.start(specOf(agent)))
  const caller = new Reader(run, clientView, { upTo: 'last', from: 'start' })
  await agent.called()
  await turn()
  const { record, topic: { epoch, last } } = run
  t.equal(caller.lines.length, last)
  t.equal(run.topic.stored, 0)
  await takeOver(store, record)
  hold.release()
  await run.ended
  await turn()
  const found = await engine.findByEpoch({}, 'ledger', 's1', epoch)
  if (found === undefined) return t.fail()
  t.same(idsOf(found), [`${epoch}-2.1 {"kind":"error","code":"NODE_LOST"}`])
  t.equal(new Reader(found, clientView, { after: `${epoch}.1` }).gaps.length, 1)
  t.same(new Reader(found, clientView, { after: `${epoch}-2.1` }).gaps, [])
})

t.test('what was written after a look-up had read the record keeps the id of its writer', async (t) => {
  const { store, a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('x')
  await turn()
  const hold = b.plan.hold('log.read')
  const looking = b.engine.find({}, 'ledger', 'r1')
  await hold.arrived
  await takeOver(store, run.record)
  hold.release()
  const found = await looking
  if (found === undefined) return t.fail()
  t.match(idsOf(found).at(-1), `${run.record.epoch}-2.`)
  t.match(idsOf(found).at(-2), `${run.record.epoch}.`)
})

t.test('a run that is gone when its writers are asked for is unknown', async (t) => {
  const { a, b } = makePair(t)
  b.engine.register(ledger)
  const agent = new ScriptedAgent()
  const run = runOf(await a.engine.start(specOf(agent)))
  await agent.called()
  await turn()
  const hold = b.plan.hold('runs.get')
  const looking = b.engine.find({}, 'ledger', 'r1')
  await hold.arrived
  await a.store.runs.delete(run.record.key)
  hold.release()
  t.equal(await looking, undefined)
})

t.test('a caller who was told that nothing is stored, while the end was, comes back to the end', async (t) => {
  const clock = VirtualClock.install()
  t.teardown(() => { clock.uninstall() })
  const { engine, plan } = makeEngine(t, { storeTimeoutMs: 500 })
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent)))
  const caller = new Reader(run, clientView, { upTo: 'last', from: 'start' })
  const execution = await agent.called()
  plan.failAfter('runs.commit', { times: Infinity })
  execution.finish()
  t.match(await clock.until(run.ended, 10_000, 'the end'), { end: { code: 'STORE_UNAVAILABLE' } })
  await clock.advance(0)
  const { epoch } = run.record
  const lines = caller.lines
  t.match(lines.at(-1), `${epoch}-unstored.${lines.length} {"kind":"error","code":"STORE_UNAVAILABLE"`)
  plan.heal()
  const found = await engine.findByEpoch({}, 'ledger', 's1', `${epoch}-unstored`)
  if (found === undefined) return t.fail()
  const back = new Reader(found, clientView, { after: `${epoch}-unstored.${lines.length}` })
  t.equal(back.gaps.length, 1)
  t.same(back.lines, idsOf(found))
  t.match(back.lines.at(-1), new RegExp(`^${epoch}\\.5 {"kind":"success"`))
  t.same(new Reader(found, clientView, { after: `${epoch}.1` }).lines, back.lines.slice(1))
})
