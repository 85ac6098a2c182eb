import t from 'tap'
import { RunEngine } from '../../../lib/runs/index.ts'
import { wrapStore } from '../../../lib/stores/index.ts'
import { lmdbStore } from '../../../lib/stores/lmdb/index.ts'
import { dataDir } from '../../helpers/data-dir.ts'
import { ledger } from '../../helpers/ledger-protocol.ts'
import { approve, askFor, resultOf, runOf } from '../../helpers/run-engine.ts'
import { kindsOf, specOf } from '../../helpers/run-specs.ts'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'

t.test('what waits for an approval goes on after a restart, in the same log, and is done once', async (t) => {
  const path = await dataDir(t)
  const agent = new ScriptedAgent({ resume: true })
  const before = await lmdbStore({ path })
  const first = new RunEngine({ store: before, node: 'first' })
  const paused = runOf(await first.start(specOf(agent)))
  const execution = await agent.called()
  await execution.text('I will ', 'delete it')
  await execution.say(...askFor('c1'))
  execution.finish()
  await paused.settled()
  const told = paused.topic.read(0)
  await first.close()
  await before.close()

  const after = await lmdbStore({ path })
  const second = new RunEngine({ store: after, node: 'second' })
  t.teardown(async () => {
    await second.close({ timeoutMs: 100 })
    await after.close()
  })
  second.register(ledger)
  t.match(await second.openInterrupts({}, 'ledger', 's1'), [{ id: 'ask-c1', state: 'open', pending: { kind: 'confirm', toolCall: { id: 'c1' } } }])
  const run = await second.lastOf({}, 'ledger', 's1')
  if (run === undefined) throw new Error('the run is gone')
  t.same(run.record.state, 'waiting')
  t.same(run.topic.read(0).map(({ seq, data }) => [seq, data]), told.map(({ seq, data }) => [seq, data]), 'every event is as it was told')

  const decisions = [approve('c1')]
  const results = await Promise.all([1, 2].map(async () => await second.resume(run, { ...specOf(agent), input: { messages: [], history: 'append', resume: decisions }, decisions })))
  t.equal(results.filter(({ kind }) => kind === 'resumed').length, 1, 'answered once')
  const resumed = runOf(results.find(({ kind }) => kind === 'resumed') as Parameters<typeof runOf>[0]) // there is one
  const going = await agent.called()
  t.same(going.input.resume, decisions)
  await going.say(...resultOf('c1'))
  going.finish()
  const record = await resumed.ended
  t.equal(record.state, 'completed')
  t.same(kindsOf(resumed).slice(-3), ['started', 'result', 'success'])
  t.match((await after.interrupts.list(record.key)).map(({ state, outcome }) => [state, outcome]), [['done', { state: 'success' }]])
  const log = await after.log.read(record.key, 0, 1_000)
  t.same(log?.events.map(({ seq }) => seq), Array.from({ length: log?.last ?? 0 }, (_, index) => index + 1), 'one dense sequence over both processes')
})

t.test('a run that was going when its process ended is lost, and told so', async (t) => {
  const path = await dataDir(t)
  let now = 1_000_000
  const agent = new ScriptedAgent()
  const before = await lmdbStore({ path, now: () => now })
  const first = new RunEngine({ store: before, node: 'first', leaseMs: 2_000 })
  await first.start(specOf(agent))
  const execution = await agent.called()
  await execution.text('half a sen')
  // The process is gone in one moment: nothing of it reaches the store any more.
  await before.close()
  t.teardown(async () => { await first.close({ timeoutMs: 100 }) })

  now += 3_000
  const after = await lmdbStore({ path, now: () => now })
  let onCommit = (): void => {}
  const reaped = new Promise<void>((resolve) => { onCommit = resolve })
  const watched = wrapStore(after, async (operation, call) => {
    const result = await call()
    if (operation === 'runs.commit') onCommit()
    return result
  })
  const second = new RunEngine({ store: watched, node: 'second', leaseMs: 2_000 })
  t.teardown(async () => {
    await second.close({ timeoutMs: 100 })
    await after.close()
  })
  // All timers of ours are unref'ed; a server's sockets would keep the process alive.
  const alive = setInterval(() => {}, 60_000)
  second.register(ledger)
  await reaped
  clearInterval(alive)
  const found = await second.lastOf({}, 'ledger', 's1')
  t.match(found?.record, { state: 'lost', end: { kind: 'lost' } })
})
