import t from 'tap'
import { envelope } from '../../helpers/envelope-protocol.ts'
import { makeEngine, pause, runOf, turn } from '../../helpers/run-engine.ts'
import { specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

const key = (fingerprint: string, onOther?: 'conflict' | 'new-unless-active') => ({ idempotency: { key: 'k', fingerprint, ...onOther !== undefined && { onOther } } })

t.test('the same start again is the same run, while it runs and after', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, key('f'))))
  const execution = await agent.called()
  t.same(await engine.start(specOf(agent, key('f'))), { kind: 'existing', run })
  execution.finish()
  await run.ended
  t.same(await engine.start(specOf(agent, key('f'))), { kind: 'existing', run })
  t.equal(agent.executions.length, 1)
})

t.test('starts at the same moment make one run', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const results = await Promise.all(Array.from({ length: 10 }, () => engine.start(specOf(agent, key('f')))))
  t.same(results.map(({ kind }) => kind).sort(), [...Array.from({ length: 9 }, () => 'existing'), 'started'])
  t.equal(new Set(results.map(runOf)).size, 1)
  await engine.stop(runOf(results[0] as typeof results[number]))
  t.equal(agent.executions.length, 1)
})

t.test('another body under the same key is a conflict, for ever', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, key('f'))))
  t.same(await engine.start(specOf(agent, key('g'))), { kind: 'conflict', run })
  await engine.stop(run)
  t.same(await engine.start(specOf(agent, key('g'))), { kind: 'conflict', run })
})

t.test('where ids are reused another body is a new run, unless one is active', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const spec = (fingerprint: string) => specOf(agent, { protocol: envelope, ...key(fingerprint, 'new-unless-active') })
  const first = runOf(await engine.start(spec('f')))
  t.same(await engine.start(spec('g')), { kind: 'conflict', run: first })
  await engine.stop(first)
  const second = runOf(await engine.start(spec('g')))
  t.not(second, first)
  t.equal(await engine.find({}, 'envelope', 'r1', 's1'), second)
  await engine.stop(second)
  t.same(await engine.start(spec('g')), { kind: 'existing', run: second })
})

t.test('keys of other owners and protocols are other keys', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const specs = [specOf(agent, key('f')), specOf(agent, { ...key('g'), owner: { id: 'u' } }), specOf(agent, { ...key('h'), protocol: envelope, session: 's2' })]
  for (const spec of specs) t.equal((await engine.start(spec)).kind, 'started')
})

t.test('a key whose start failed is free at once', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  plan.failBefore('runs.create')
  await t.rejects(engine.start(specOf(agent, key('f'))), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  t.equal((await engine.start(specOf(agent, key('g')))).kind, 'started')
})

t.test('a run whose id was to be reused is still found when that start is refused', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const spec = (fingerprint: string) => specOf(agent, { protocol: envelope, ...key(fingerprint, 'new-unless-active') })
  const first = runOf(await engine.start(spec('f')))
  await engine.stop(first)
  plan.failBefore('runs.create')
  await t.rejects(engine.start(spec('g')), { code: 'AGT_ERR_STORE_UNAVAILABLE' })
  t.same(await engine.start(spec('f')), { kind: 'existing', run: first })
})

t.test('a duplicate waits for the start that is under way', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const hold = plan.hold('runs.create')
  const first = engine.start(specOf(agent, key('f')))
  await hold.arrived
  const second = engine.start(specOf(agent, key('f')))
  await turn()
  hold.release()
  t.same((await Promise.all([first, second])).map(({ kind }) => kind), ['started', 'existing'])
})

t.test('a key that was claimed by a start which died is taken over', async (t) => {
  const { engine, store } = makeEngine(t, { storeTimeoutMs: 50 })
  const agent = new ScriptedAgent()
  const kvKey = { owner: {}, space: 'dedupe ledger', key: 'k' }
  await store.kv.set(kvKey, { run: 'dead', fingerprint: 'f', at: Date.now() - 60_000 }, 60_000)
  t.equal((await engine.start(specOf(agent, key('f')))).kind, 'started')
})

t.test('a key that was claimed on another node a moment ago is waited for', async (t) => {
  const { engine, store } = makeEngine(t)
  const other = makeEngine(t, { store })
  const agent = new ScriptedAgent()
  const hold = other.plan.hold('runs.create')
  const first = other.engine.start(specOf(agent, key('f')))
  await hold.arrived
  const second = engine.start(specOf(agent, key('f')))
  await turn()
  hold.release()
  const run = runOf(await first)
  const found = await second
  t.equal(found.kind, 'existing')
  t.same(runOf(found).record.key, run.record.key)
})

t.test('a run that expired between two look-ups is an error of the moment, or a conflict without a run', async (t) => {
  const { engine, store, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, key('f'))))
  await engine.stop(run)
  const other = makeEngine(t, { store })
  other.engine.register(specOf(agent).protocol)
  for (const [fingerprint, expected] of [['f', undefined], ['g', { kind: 'conflict' }]] as const) {
    const hold = other.plan.hold('log.read')
    const start = other.engine.start(specOf(agent, key(fingerprint)))
    await hold.arrived
    const record = run.record
    await store.runs.delete(record.key)
    hold.release()
    if (expected === undefined) await t.rejects(start, { code: 'AGT_ERR_STORE_UNAVAILABLE' })
    else t.same(await start, expected)
    if (fingerprint === 'f') {
      await store.index.add({ key: record.key, clientId: 'r1', session: 's1', createdAt: record.createdAt })
      await store.runs.create({ ...record, state: 'running' }, { node: 'x', op: 'x', ms: 1_000 })
    }
  }
  plan.heal()
})

t.test('an answered pause is over, so its id may start again', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const first = runOf(await engine.start(specOf(agent, { protocol: envelope, holdGateWhileWaiting: false, ...key('f', 'new-unless-active') })))
  await pause(agent, first)
  const second = await engine.start(specOf(agent, {
    protocol: envelope, ...key('g', 'new-unless-active'), resumes: { interrupts: ['int:c1'], decisions: [{ kind: 'confirm', toolCallId: 'c1', approved: true }] }
  }))
  t.equal(second.kind, 'started')
})

t.test('what a start would find can be asked for without starting', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const find = (fingerprint: string, onOther?: 'new-unless-active') => engine.findStarted({}, envelope.name, { key: 'k', fingerprint, ...onOther !== undefined && { onOther } })
  t.equal(await find('f'), undefined)
  const run = runOf(await engine.start(specOf(agent, { protocol: envelope, ...key('f') })))
  t.same(await find('f'), { kind: 'existing', run })
  t.same(await find('g'), { kind: 'conflict', run })
  t.same(await find('g', 'new-unless-active'), { kind: 'conflict', run }, 'it is active')
  await engine.stop(run)
  t.same(await find('f', 'new-unless-active'), { kind: 'existing', run })
  t.equal(await find('g', 'new-unless-active'), undefined)
  t.same(await find('g'), { kind: 'conflict', run })
  t.equal(await engine.findStarted({ id: 'somebody else' }, envelope.name, { key: 'k', fingerprint: 'f' }), undefined)
  await store.runs.delete(run.record.key)
  t.equal(await find('f'), undefined, 'the run is gone')
  t.equal(agent.executions.length, 1)
})
