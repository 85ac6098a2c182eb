import { mock } from 'node:test'
import t from 'tap'
import { Connections } from '../../../lib/runs/disconnect.ts'
import { makeEngine, pause, runOf, turn } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('interrupt: the run ends when its last reader leaves, even while its agent is idle', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const own = run.connect({ own: true })
  const tab = run.connect()
  const execution = await agent.called()
  await execution.text('x')
  own.close()
  own.close()
  await turn()
  t.equal(run.record.state, 'running', 'somebody still reads')
  tab.close()
  await execution.returned
  t.match(execution.context.signal.reason, { name: 'AbortError', source: 'user' })
  t.match(await run.ended, { state: 'cancelled', end: { kind: 'interrupted', code: 'disconnect' } })
  t.same(kindsOf(run), ['started', 'text', 'text-end', 'error'])
})

t.test('a run that never had a reader is not abandoned', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const execution = await agent.called()
  execution.finish()
  t.equal((await run.ended).state, 'completed')
  run.connect().close()
})

t.test('continue: a run goes on without readers', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'continue' })))
  run.connect({ own: true }).close()
  const execution = await agent.called()
  execution.finish()
  t.equal((await run.ended).state, 'completed')
})

t.test('grace: the run ends when nobody came back in time', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => { mock.timers.reset() })
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: { graceMs: 1_000 } })))
  await agent.called()
  run.connect({ own: true }).close()
  mock.timers.tick(999)
  const back = run.connect()
  mock.timers.tick(10_000)
  await turn()
  t.equal(run.record.state, 'running')
  back.close()
  mock.timers.tick(1_000)
  t.match(await run.ended, { end: { code: 'disconnect' } })
})

t.test('readers of other nodes count', async (t) => {
  const { engine, store } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  await store.presence.enter(run.record.key, 'other', 60_000)
  run.connect().close()
  await turn()
  t.equal(run.record.state, 'running')
  await store.presence.leave(run.record.key, 'other')
  await store.presence.enter(run.record.key, engine.node, 60_000)
  run.connect().close()
  t.match(await run.ended, { end: { code: 'disconnect' } })
})

t.test('a reader that comes back while other nodes are asked keeps the run', async (t) => {
  const { engine, plan } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const hold = plan.hold('presence.nodes')
  run.connect().close()
  await hold.arrived
  const back = run.connect()
  hold.release()
  await turn()
  t.equal(run.record.state, 'running')
  plan.failBefore('presence.nodes')
  back.close()
  t.match(await run.ended, { end: { code: 'disconnect' } }, 'a store that does not answer keeps nothing running')
})

t.test('a waiting run is not interrupted', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt' })))
  const reader = run.connect()
  await pause(agent, run)
  reader.close()
  await turn()
  t.equal(run.record.state, 'waiting')
})

t.test('a caller that takes nothing for too long counts as gone, and the policy decides', async (t) => {
  for (const onDisconnect of ['interrupt', 'continue'] as const) {
    const { engine } = makeEngine(t)
    const agent = new ScriptedAgent()
    const run = runOf(await engine.start(specOf(agent, { onDisconnect, writeTimeoutMs: 30 })))
    let drops = 0
    const connection = run.connect({ own: true, onDrop: () => { drops++ } })
    const other = run.connect()
    run.topic.attach({
      view: { key: 'raw', frame: ({ data }) => ({ head: '', data, tail: '\n' }) }, upTo: 'last', lossless: true, sink: { write: () => false, gap () {}, end () {} }
    })
    const execution = await agent.called()
    for (let i = 0; i < 4; i++) execution.text('x'.repeat(30_000)).catch(() => {})
    other.close()
    if (onDisconnect === 'interrupt') {
      t.match(await run.ended, { end: { code: 'disconnect' } })
    } else {
      execution.finish()
      t.match(await run.ended, { state: 'completed' }, 'the agent waits no longer')
    }
    t.equal(drops, 1)
    connection.close()
  }
})

t.test('a caller that takes again in time has everything', async (t) => {
  const { engine } = makeEngine(t)
  const agent = new ScriptedAgent()
  const run = runOf(await engine.start(specOf(agent, { onDisconnect: 'interrupt', replay: { maxEvents: 1_000, maxBytes: 10_000_000, ttlMs: 1_000 } })))
  run.connect({ own: true })
  const chunks: Buffer[] = []
  let isOpen = false
  const attachment = run.topic.attach({
    view: { key: 'raw', frame: ({ data }) => ({ head: '', data, tail: '\n' }) }, upTo: 'last', lossless: true, sink: { write: (chunk) => { chunks.push(Buffer.from(chunk)); return isOpen }, gap: () => { t.fail('a gap') }, end () {} }
  })
  const execution = await agent.called()
  for (let i = 0; i < 20; i++) execution.text(String(i).repeat(20_000)).catch(() => {})
  let pulls = 0
  for (let still = 0; still < 10; still++) {
    await turn()
    if (execution.pulls !== pulls) still = 0
    pulls = execution.pulls
  }
  t.ok(pulls < 10, `the agent waits after ${pulls}`)
  isOpen = true
  attachment.resume()
  execution.finish()
  await run.ended
  await turn()
  t.ok(Buffer.concat(chunks).toString() === run.topic.read(0).map(({ data }) => `${data}\n`).join(''), 'everything, once, in order')
})

t.test('counting connections', async (t) => {
  const seen: unknown[] = []
  const connections = new Connections('interrupt', { onAbandoned: () => { seen.push('abandoned') }, onPresence: (isPresent) => { seen.push(isPresent) } })
  const one = connections.open()
  const two = connections.open({ own: true })
  t.equal(connections.size, 2)
  connections.dropOwn()
  two.close()
  t.same(seen, [true])
  one.close()
  one.close()
  t.same(seen, [true, false, 'abandoned'])
  connections.setPolicy('continue')
  connections.open().close()
  connections.setPolicy('interrupt')
  connections.end()
  connections.open().close()
  t.same(seen, [true, false, 'abandoned', true, false, true, false], 'nothing follows from readers that leave a run that is over')
})
